// Steps of PyTorch and timm from golden/rules.txt.
// Used by the tests of the reference rules and of memfit's rules.
#pragma once

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace golden {

using row = std::vector<double>;

/// One step: the gradient handed in, the parameter and the moments after it.
struct step {
  row g, p;
  std::array<row, 3> s;
};

/// One rule with its hyper-parameters by PyTorch's or timm's names, the start and the steps.
struct rule_case {
  std::string rule;
  std::map<std::string, double> fields;
  row start;
  std::vector<step> steps;

  double operator[](char const* field) const {
    auto const found = fields.find(field);
    return found == fields.end() ? 0 : found->second;
  }
};

inline std::vector<rule_case> rule_cases() {
  std::ifstream file(MEMFIT_TEST_GOLDEN "/rules.txt");
  if (!file) throw std::runtime_error("golden/rules.txt cannot be read");
  std::vector<rule_case> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key, word;
    words >> key;
    if (key.starts_with('#')) continue;
    if (key == "case") {
      words >> cases.emplace_back().rule;
      while (words >> word) {
        auto const equals = word.find('=');
        cases.back().fields[word.substr(0, equals)] = std::stod(word.substr(equals + 1));
      }
      continue;
    }
    row values;
    while (words >> word) values.push_back(std::strtod(word.c_str(), nullptr));
    auto& current = cases.back();
    if (key == "g") current.steps.emplace_back();
    if (key == "p" && current.steps.empty()) {
      current.start = values;
      continue;
    }
    auto& last = current.steps.back();
    (key == "g" ? last.g : key == "p" ? last.p : last.s.at(std::stoul(key.substr(1)))) = values;
  }
  return cases;
}

}  // namespace golden
