#include "cuda_backend.cuh"
#include "cuda_warps.cuh"

namespace gpt2 {

namespace {

constexpr float slope = 0.7978845608028654F;
constexpr float cubic = 0.044715F;

// gelu(x) = x s, with s = 1 / (1 + e^(-2 u)) and u = sqrt(2 / pi) (x + 0.044715 x^3).
__device__ float gelu_share(float x) {
  return 1.0F / (1.0F + expf(-2.0F * slope * (x + cubic * x * x * x)));
}

__device__ float gelu_derivative(float x) {
  float const s = gelu_share(x);
  return s + x * s * (1.0F - s) * 2.0F * slope * (1.0F + 3.0F * cubic * x * x);
}

__global__ void bend(index count, const float* in, float* out) {
  for (index i = first_warp() * lanes + lane(); i < count; i += all_warps() * lanes)
    out[i] = in[i] * gelu_share(in[i]);
}

__global__ void bend_backward(index count, const float* in, float* gradient) {
  for (index i = first_warp() * lanes + lane(); i < count; i += all_warps() * lanes)
    gradient[i] *= gelu_derivative(in[i]);
}

__global__ void drop_elements(index count, memfit::noise_key key, index first,
                              std::uint32_t threshold, float scale, const float* in, float* out,
                              bool add) {
  for (index i = first_warp() * lanes + lane(); i < count; i += all_warps() * lanes) {
    auto const noise =
        memfit::noise(memfit::fold_high(key, first + i), static_cast<std::uint32_t>(first + i));
    float const value = noise >= threshold ? in[i] * scale : 0.0F;
    out[i] = add ? out[i] + value : value;
  }
}

struct row_terms {
  const float* in;
  index columns;

  __device__ void operator()(index row, index column, float (&sums)[1]) const {
    sums[0] += in[row * columns + column];
  }
};

}  // namespace

void cuda_backend::gelu(index count, const tensor<float>& in, tensor<float>& out) {
  launch_warps(bend, divide_up(count, lanes), stream_, count, in.data(), out.data());
}

void cuda_backend::gelu_backward(index count, const tensor<float>& in, tensor<float>& gradient) {
  launch_warps(bend_backward, divide_up(count, lanes), stream_, count, in.data(), gradient.data());
}

void cuda_backend::add_rows(index rows, const tensor<float>& in, tensor<float>& sum) {
  launch_columns(rows, sum.size(), row_terms{in.data(), sum.size()},
                 column_outputs<1>{{sum.data()}}, stream_);
}

void cuda_backend::drop(index count, const dropout& which, const tensor<float>& in,
                        tensor<float>& out, store mode) {
  launch_warps(drop_elements, divide_up(count, lanes), stream_, count, which.key, which.first,
               which.threshold(), which.scale(), in.data(), out.data(), mode == store::add);
}

void cuda_backend::copy(index count, const tensor<float>& in, tensor<float>& out) {
  check(cudaMemcpyAsync(out.data(), in.data(), static_cast<std::size_t>(count) * sizeof(float),
                        cudaMemcpyDeviceToDevice, stream_.get()));
}

void cuda_backend::set_zero(tensor<float>& t) {
  check(cudaMemsetAsync(t.data(), 0, static_cast<std::size_t>(t.bytes()), stream_.get()));
}

}  // namespace gpt2
