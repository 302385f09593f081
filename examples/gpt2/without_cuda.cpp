#include "device.hpp"
#include "user_error.hpp"

namespace gpt2 {

std::unique_ptr<device> open_cuda() {
  throw user_error("--device cuda: this gpt2_train was built without CUDA");
}

}  // namespace gpt2
