#include <memfit/exec/host.hpp>

#include "device.hpp"
#include "host_backend.hpp"
#include "rules.hpp"

namespace gpt2 {

namespace {

class host_device final : public device {
 public:
  explicit host_device(int threads) : threads_{threads}, network_{threads} {}

  [[nodiscard]] std::string describe() const override {
    return std::to_string(threads_) + " threads";
  }
  backend<float>& network() override { return network_; }
  std::unique_ptr<optimizer> make_optimizer(const optimizer_settings& settings,
                                            weights<float>& parameters) override {
    return make_optimizer_on(memfit::host{threads_}, settings, parameters);
  }

 private:
  int threads_;
  host_backend<float> network_;
};

}  // namespace

std::unique_ptr<device> open_host(int threads) {
  return std::make_unique<host_device>(threads);
}

}  // namespace gpt2
