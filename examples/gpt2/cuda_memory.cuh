// The memory of a GPU and the stream on which everything happens there.
// Used by the CUDA backend of the GPT-2 example.
#pragma once

#include "cuda_check.cuh"
#include "memory.hpp"

namespace gpt2 {

class cuda_stream {
 public:
  // Throws user_error where no device answers.
  cuda_stream();
  ~cuda_stream();
  cuda_stream(const cuda_stream&) = delete;
  cuda_stream& operator=(const cuda_stream&) = delete;

  [[nodiscard]] cudaStream_t get() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

class cuda_memory final : public memory {
 public:
  explicit cuda_memory(const cuda_stream& stream) : stream_{stream} {}

  void* allocate(index bytes) override;
  void release(void* p) override;
  void copy_from_host(void* to, const void* from, index bytes) override;
  void copy_to_host(void* to, const void* from, index bytes) override;

 private:
  const cuda_stream& stream_;
};

}  // namespace gpt2
