// Where a run computes: the backend of its network, and what runs and optimizes it there.
// Used by the trainer, which knows no more of the host or of CUDA than this.
#pragma once

#include <memory>
#include <string>

#include "backend.hpp"
#include "budget.hpp"
#include "optimizer.hpp"
#include "runner.hpp"
#include "update.hpp"

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
  [[nodiscard]] virtual std::unique_ptr<update<T>> make_update(const update_settings& settings,
                                                               weights<T>& gradients,
                                                               optimizer<T>& stepping) = 0;
  // Throws memfit::memory_error where its arena cannot be had.
  [[nodiscard]] virtual std::unique_ptr<runner<T>> make_runner(
      const memfit::checkpoint::chain& stages, const memfit::checkpoint::schedule& plan) = 0;
  // See with_times.
  [[nodiscard]] virtual memfit::checkpoint::chain measure(model<T>& network,
                                                          const token* tokens) = 0;
  // Of memory that is free to take.
  [[nodiscard]] virtual index free_bytes() const = 0;
};

// What memfit allocates on a device, and what the backend works in, counts in the budget.
template <class T>
std::unique_ptr<device<T>> open_host(int threads, budget& counts);

// Throws user_error where the program was built without CUDA and where no device answers.
template <class T>
std::unique_ptr<device<T>> open_cuda(budget& counts);

}  // namespace gpt2
