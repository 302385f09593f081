// The gradients of chosen tensors, step by step, in one file for programs that replay them.
// Used by the trainer for --capture-gradients; bench/fidelity reads such files.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "weights.hpp"

namespace gpt2 {

// Layout: a line "memfit-gradients 1", a line "NAME COUNT" per tensor, an empty line; then for each
// step all elements of every tensor, in the order of these lines, as little-endian fp32.
class gradient_file {
 public:
  // Without a path it writes nothing. Throws user_error.
  explicit gradient_file(const std::optional<std::filesystem::path>& path);
  // The gradients of one step, of both embeddings, the first block's attention and MLP, and the
  // last norm.
  template <class T>
  void write(weights<T>& gradients);

 private:
  template <class T>
  void write(const tensor<T>& gradient);

  std::filesystem::path path_;
  std::ofstream out_;
  bool begun_ = false;
};

}  // namespace gpt2
