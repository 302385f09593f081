#include "cuda_backend.cuh"
#include "cuda_optimizer.cuh"
#include "device.hpp"

namespace gpt2 {

namespace {

class cuda_device final : public device {
 public:
  [[nodiscard]] std::string describe() const override {
    int current = 0;
    check(cudaGetDevice(&current));
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, current));
    return properties.name;
  }
  backend<float>& network() override { return network_; }
  std::unique_ptr<optimizer> make_optimizer(const optimizer_settings& settings,
                                            weights<float>& parameters) override {
    return make_cuda_optimizer(stream_.get(), settings, parameters);
  }

 private:
  cuda_stream stream_;
  cuda_backend network_{stream_};
};

}  // namespace

std::unique_ptr<device> open_cuda() {
  return std::make_unique<cuda_device>();
}

}  // namespace gpt2
