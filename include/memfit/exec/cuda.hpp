// The CUDA executor as a handle: a stream and a device, for any C++ compiler.
// Used by code that passes an executor on; what works on the device is in exec/cuda.cuh.
#pragma once

#include <cstdint>

#include "memfit/core/memory.hpp"
#include "memfit/exec/list.hpp"

struct CUstream_st;

namespace memfit {

/// Runs on a CUDA device, in the order of one stream, and returns without waiting unless a function
/// says so. Results have the bits of the host's. Tensors lie in memory that the device reads.
///
/// The members are templates so that a program that holds a handle need not be compiled by nvcc:
/// where one is called, exec/cuda.cuh is included.
class cuda {
 public:
  /// `stream` stays the caller's; null is the default stream. `device` is that of the stream, or -1
  /// for whichever is current in the calling thread.
  explicit cuda(CUstream_st* stream = nullptr, int device = -1)
      : stream_(stream), device_(device) {}

  CUstream_st* stream() const { return stream_; }
  int device() const { return device_; }

  /// Uninitialized device memory. Throws memory_error. Not while the stream is captured.
  template <class = void>
  buffer allocate(std::int64_t bytes) const;
  /// Within device memory.
  template <class = void>
  void copy(void* to, void const* from, std::int64_t bytes) const;
  /// Waits until the host memory may be used again, or has been written. Not while the stream is
  /// captured.
  template <class = void>
  void copy_from_host(void* to, void const* from, std::int64_t bytes) const;
  template <class = void>
  void copy_to_host(void* to, void const* from, std::int64_t bytes) const;
  template <class = void>
  void fill(void* to, unsigned char value, std::int64_t bytes) const;

  /// Calls a program that reads and writes a few numbers, in one thread of the device.
  template <class Program>
  void once(Program const& program) const;

  /// One fused pass over all columns of one tensor.
  template <class Rule, class Format, class Column>
  void step(step_item<Rule> const& item, gate g) const;
  /// An empty list of tensors to be stepped together.
  template <class Rule, class Format, class Column>
  owner<step_list<Rule>> steps() const;

  /// Adds one tensor to sums in Column.
  template <class Column>
  void sum(sum_item const& item, sum_call const& call) const;
  /// An empty list of sums in Column.
  template <class Column>
  owner<sum_list> sums() const;

  /// An empty list of tensors whose squares are summed together.
  template <class = void>
  owner<norm_list> norms() const;

  /// Codes n elements; see quantize.hpp.
  template <class Storage>
  void quantize(void const* in, scalar_kind kind, std::int64_t n, void* codes, void* scales) const;
  /// Decodes n elements; see quantize.hpp.
  template <class Storage>
  void dequantize(void const* codes, void const* scales, std::int64_t n, void* out,
                  scalar_kind kind) const;

 private:
  CUstream_st* stream_;
  int device_;
};

static_assert(executor<cuda>);

}  // namespace memfit
