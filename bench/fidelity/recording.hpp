// Gradients of a training run that gpt2_train --capture-gradients wrote, read step by step.
// Used by the fidelity bench, whose replays all see each gradient once.
#pragma once

#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace memfit::bench {

/// A tensor of the recording, of which the first `count` elements are replayed.
struct recorded_tensor {
  std::string name;
  std::int64_t count = 0, stored = 0;
};

class recording {
 public:
  /// Replays at most `most` elements of each tensor. Throws std::runtime_error.
  recording(std::string const& path, std::int64_t most) : in_(path, std::ios::binary) {
    std::string line;
    if (!std::getline(in_, line) || line != "memfit-gradients 1")
      throw std::runtime_error(path + " is no file of gradients");
    while (std::getline(in_, line) && !line.empty()) {
      std::istringstream words(line);
      recorded_tensor t;
      if (!(words >> t.name >> t.stored) || t.stored <= 0)
        throw std::runtime_error(path + ": a broken line: " + line);
      t.count = t.stored < most ? t.stored : most;
      tensors_.push_back(t);
    }
  }

  std::vector<recorded_tensor> const& tensors() const { return tensors_; }

  /// The next tensor's gradient, tensor after tensor and step after step; false at the end.
  bool next(recorded_tensor const& t, std::vector<float>& gradient) {
    gradient.resize(static_cast<std::size_t>(t.count));
    in_.read(reinterpret_cast<char*>(gradient.data()), 4 * t.count);
    in_.ignore(4 * (t.stored - t.count));
    return static_cast<bool>(in_);
  }

 private:
  std::ifstream in_;
  std::vector<recorded_tensor> tensors_;
};

}  // namespace memfit::bench
