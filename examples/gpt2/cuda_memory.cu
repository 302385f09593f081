#include "cuda_memory.cuh"

#include "user_error.hpp"

namespace gpt2 {

cuda_stream::cuda_stream() {
  auto const result = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  if (result != cudaSuccess)
    throw user_error("--device cuda: no device answers (" + describe(result) + ")");
}

cuda_stream::~cuda_stream() {
  cudaStreamDestroy(stream_);
}

void* cuda_memory::allocate(index bytes) {
  void* p = nullptr;
  check(cudaMalloc(&p, static_cast<std::size_t>(bytes)));
  check(cudaMemsetAsync(p, 0, static_cast<std::size_t>(bytes), stream_.get()));
  return p;
}

void cuda_memory::release(void* p) {
  cudaFree(p);
}

void cuda_memory::copy_from_host(void* to, const void* from, index bytes) {
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice,
                        stream_.get()));
  stream_.wait();
}

void cuda_memory::copy_to_host(void* to, const void* from, index bytes) {
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost,
                        stream_.get()));
  stream_.wait();
}

}  // namespace gpt2
