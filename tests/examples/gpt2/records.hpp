// Reads the log of gpt2_train.
// Used by the tests of whole runs.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "program.hpp"

namespace program {

inline std::vector<nlohmann::json> records(const fs::path& log) {
  std::istringstream lines{read(log)};
  std::vector<nlohmann::json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

}  // namespace program
