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

template <class T>
__global__ void bend(index count, const T* in, T* out) {
  for (index i = first_warp() * lanes + lane(); i < count; i += all_warps() * lanes)
    out[i] = T(wide<T>(in[i]) * gelu_share(wide<T>(in[i])));
}

template <class T>
__global__ void bend_backward(index count, const T* in, T* gradient) {
  for (index i = first_warp() * lanes + lane(); i < count; i += all_warps() * lanes)
    gradient[i] = T(wide<T>(gradient[i]) * gelu_derivative(wide<T>(in[i])));
}

template <class T>
__global__ void drop_elements(index count, memfit::noise_key key, index first,
                              std::uint32_t threshold, float scale, const T* in, T* out, bool add) {
  for (index i = first_warp() * lanes + lane(); i < count; i += all_warps() * lanes) {
    auto const noise =
        memfit::noise(memfit::fold_high(key, first + i), static_cast<std::uint32_t>(first + i));
    float const value = noise >= threshold ? wide<T>(in[i]) * scale : 0.0F;
    out[i] = T(add ? wide<T>(out[i]) + value : value);
  }
}

template <class T>
struct row_terms {
  const T* in;
  index columns;

  __device__ void operator()(index row, index column, float (&sums)[1]) const {
    sums[0] += wide<T>(in[row * columns + column]);
  }
};

}  // namespace

template <class T>
void cuda_backend<T>::gelu(index count, const tensor<T>& in, tensor<T>& out) {
  launch_warps(bend<T>, divide_up(count, lanes), stream_, count, in.data(), out.data());
}

template <class T>
void cuda_backend<T>::gelu_backward(index count, const tensor<T>& in, tensor<T>& gradient) {
  launch_warps(bend_backward<T>, divide_up(count, lanes), stream_, count, in.data(),
               gradient.data());
}

template <class T>
void cuda_backend<T>::add_rows(index rows, const tensor<T>& in, tensor<T>& sum) {
  launch_columns(rows, sum.size(), row_terms<T>{in.data(), sum.size()},
                 column_outputs<T, 1>{{sum.data()}}, stream_);
}

template <class T>
void cuda_backend<T>::drop(index count, const dropout& which, const tensor<T>& in, tensor<T>& out,
                           store mode) {
  launch_warps(drop_elements<T>, divide_up(count, lanes), stream_, count, which.key, which.first,
               which.threshold(), which.scale(), in.data(), out.data(), mode == store::add);
}

template <class T>
void cuda_backend<T>::copy(index count, const tensor<T>& in, tensor<T>& out) {
  check(cudaMemcpyAsync(out.data(), in.data(), static_cast<std::size_t>(count) * sizeof(T),
                        cudaMemcpyDeviceToDevice, stream_.get()));
}

template <class T>
void cuda_backend<T>::set_zero(tensor<T>& t) {
  check(cudaMemsetAsync(t.data(), 0, static_cast<std::size_t>(t.bytes()), stream_.get()));
}

template class cuda_backend<float>;
template class cuda_backend<bf16>;
template class cuda_backend<fp16>;

}  // namespace gpt2
