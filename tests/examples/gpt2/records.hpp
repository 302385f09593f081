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

// Runs that must end well.
class training : public fixture {
 protected:
  std::vector<nlohmann::json> train(const words& options) {
    auto const r = run(options + words{"--log", log.string()});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.err, "");
    out = r.out;
    return records(log);
  }

  std::vector<nlohmann::json> train_small(const words& options) {
    return train(small_network(text) + options);
  }

  std::string out;
};

}  // namespace program
