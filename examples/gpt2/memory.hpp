// Where tensors live: memory of the host or of a device, and the copies between it and the host.
// Used by the tensor and by the backends of the GPT-2 example, each of which has one.
#pragma once

#include <cstdint>

namespace gpt2 {

using index = std::int64_t;

// Copies return when they are done.
class memory {
 public:
  virtual ~memory() = default;

  // Zeros, aligned to 64 bytes. Throws std::bad_alloc.
  [[nodiscard]] virtual void* allocate(index bytes) = 0;
  virtual void release(void* p) = 0;
  virtual void copy_from_host(void* to, const void* from, index bytes) = 0;
  virtual void copy_to_host(void* to, const void* from, index bytes) = 0;
};

memory& host_memory();

}  // namespace gpt2
