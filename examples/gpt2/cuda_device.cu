#include <memfit/memfit.cuh>

#include "cuda_backend.cuh"
#include "cuda_optimizer.cuh"
#include "device.hpp"

namespace gpt2 {

namespace {

template <class T>
class cuda_device final : public device<T> {
 public:
  explicit cuda_device(budget& counts)
      : network_{stream_, counts}, exec_{memfit::cuda{stream_.get()}, counts} {}

  [[nodiscard]] std::string describe() const override {
    int current = 0;
    check(cudaGetDevice(&current));
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, current));
    return properties.name;
  }
  backend<T>& network() override { return network_; }
  std::unique_ptr<optimizer<T>> make_optimizer(const optimizer_settings& settings,
                                               weights<T>& parameters) override {
    return make_cuda_optimizer(exec_, settings, parameters);
  }
  std::unique_ptr<update<T>> make_update(const update_settings& settings, weights<T>& gradients,
                                         optimizer<T>& stepping) override {
    return std::make_unique<update<T>>(exec_, settings, gradients, stepping);
  }
  std::unique_ptr<runner<T>> make_runner(const memfit::checkpoint::chain& stages,
                                         const memfit::checkpoint::schedule& plan) override {
    return std::make_unique<runner_on<budgeted<memfit::cuda>, T>>(exec_, stages, plan);
  }
  memfit::checkpoint::chain measure(model<T>& network, const token* tokens) override {
    return with_times(exec_, network, tokens);
  }
  [[nodiscard]] index free_bytes() const override {
    std::size_t free = 0, all = 0;
    check(cudaMemGetInfo(&free, &all));
    return static_cast<index>(free);
  }

 private:
  cuda_stream stream_;
  cuda_backend<T> network_;
  budgeted<memfit::cuda> exec_;
};

}  // namespace

template <class T>
std::unique_ptr<device<T>> open_cuda(budget& counts) {
  return std::make_unique<cuda_device<T>>(counts);
}

#define GPT2_DEVICE(T) template std::unique_ptr<device<T>> open_cuda(budget&);

GPT2_DEVICE(float)
GPT2_DEVICE(bf16)
GPT2_DEVICE(fp16)

}  // namespace gpt2
