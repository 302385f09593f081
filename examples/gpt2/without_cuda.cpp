#include "device.hpp"
#include "user_error.hpp"

namespace gpt2 {

template <class T>
std::unique_ptr<device<T>> open_cuda(budget&) {
  throw user_error("--device cuda: this gpt2_train was built without CUDA");
}

#define GPT2_DEVICE(T) template std::unique_ptr<device<T>> open_cuda(budget&);

GPT2_DEVICE(float)
GPT2_DEVICE(bf16)
GPT2_DEVICE(fp16)

}  // namespace gpt2
