// Where a run computes: the backend of its network and the optimizers that work on its memory.
// Used by the trainer, which knows no more of the host or of CUDA than this.
#pragma once

#include <memory>
#include <string>

#include "backend.hpp"
#include "optimizer.hpp"

namespace gpt2 {

// Outlives what it has made and what lies in its backend's memory. T is what tensors are stored in.
template <class T>
class device {
 public:
  virtual ~device() = default;
  // For the user: how many threads, which GPU.
  [[nodiscard]] virtual std::string describe() const = 0;
  [[nodiscard]] virtual backend<T>& network() = 0;
  [[nodiscard]] virtual std::unique_ptr<optimizer<T>> make_optimizer(
      const optimizer_settings& settings, weights<T>& parameters) = 0;
};

template <class T>
std::unique_ptr<device<T>> open_host(int threads);

// Throws user_error where the program was built without CUDA and where no device answers.
template <class T>
std::unique_ptr<device<T>> open_cuda();

}  // namespace gpt2
