#include <memfit/exec/host.hpp>

#include "budgeted.hpp"
#include "counted_memory.hpp"
#include "device.hpp"
#include "free_memory.hpp"
#include "host_backend.hpp"
#include "rules.hpp"

namespace gpt2 {

namespace {

template <class T>
class host_device final : public device<T> {
 public:
  host_device(int threads, budget& counts)
      : threads_{threads},
        scratch_{host_memory(), counts, category::workspace},
        network_{threads, scratch_},
        exec_{memfit::host{threads}, counts} {}

  [[nodiscard]] std::string describe() const override {
    return std::to_string(threads_) + " threads";
  }
  backend<T>& network() override { return network_; }
  std::unique_ptr<optimizer<T>> make_optimizer(const optimizer_settings& settings,
                                               weights<T>& parameters) override {
    return make_optimizer_on(exec_, settings, parameters);
  }
  std::unique_ptr<update<T>> make_update(const update_settings& settings, weights<T>& gradients,
                                         optimizer<T>& stepping) override {
    return std::make_unique<update<T>>(exec_, settings, gradients, stepping);
  }
  std::unique_ptr<runner<T>> make_runner(const memfit::checkpoint::chain& stages,
                                         const memfit::checkpoint::schedule& plan) override {
    return std::make_unique<runner_on<budgeted<memfit::host>, T>>(exec_, stages, plan);
  }
  memfit::checkpoint::chain measure(model<T>& network, const token* tokens) override {
    return with_times(exec_, network, tokens);
  }
  [[nodiscard]] index free_bytes() const override { return free_host_bytes(); }

 private:
  int threads_;
  counted_memory scratch_;
  host_backend<T> network_;
  budgeted<memfit::host> exec_;
};

}  // namespace

template <class T>
std::unique_ptr<device<T>> open_host(int threads, budget& counts) {
  return std::make_unique<host_device<T>>(threads, counts);
}

#define GPT2_DEVICE(T) template std::unique_ptr<device<T>> open_host(int, budget&);

GPT2_DEVICE(float)
GPT2_DEVICE(bf16)
GPT2_DEVICE(fp16)

}  // namespace gpt2
