#include <memfit/exec/host.hpp>

#include "device.hpp"
#include "free_memory.hpp"
#include "host_backend.hpp"
#include "rules.hpp"

namespace gpt2 {

namespace {

class host_device final : public device {
 public:
  explicit host_device(int threads) : threads_{threads}, network_{threads}, exec_{threads} {}

  [[nodiscard]] std::string describe() const override {
    return std::to_string(threads_) + " threads";
  }
  backend<float>& network() override { return network_; }
  std::unique_ptr<optimizer> make_optimizer(const optimizer_settings& settings,
                                            weights<float>& parameters) override {
    return make_optimizer_on(exec_, settings, parameters);
  }
  std::unique_ptr<runner> make_runner(const memfit::checkpoint::chain& stages,
                                      const memfit::checkpoint::schedule& plan) override {
    return std::make_unique<runner_on<memfit::host>>(exec_, stages, plan);
  }
  memfit::checkpoint::chain measure(model<float>& network, const token* tokens) override {
    return with_times(exec_, network, tokens);
  }
  [[nodiscard]] index free_bytes() const override { return free_host_bytes(); }

 private:
  int threads_;
  host_backend<float> network_;
  memfit::host exec_;
};

}  // namespace

std::unique_ptr<device> open_host(int threads) {
  return std::make_unique<host_device>(threads);
}

}  // namespace gpt2
