// The log: one JSON object per step, on disk before the next step begins.
// Used by the trainer of the GPT-2 example.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "report.hpp"

namespace gpt2 {

class step_log {
 public:
  // Without a path it writes nothing. Replaces the file, but never one of `inputs`. Throws
  // user_error.
  step_log(const std::optional<std::filesystem::path>& path,
           const std::vector<std::filesystem::path>& inputs);
  void write(const report& r);

 private:
  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace gpt2
