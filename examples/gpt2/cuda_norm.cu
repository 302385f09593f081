#include "cuda_backend.cuh"
#include "cuda_warps.cuh"

namespace gpt2 {

namespace {

template <class T>
__device__ void normalize_row(index channels, const T* x, const T* gain, const T* bias, float mean,
                              float reciprocal, T* y) {
  for (index c = lane(); c < channels; c += lanes)
    y[c] = T((wide<T>(x[c]) - mean) * reciprocal * wide<T>(gain[c]) + wide<T>(bias[c]));
}

template <class T>
__global__ void norm_rows(index rows, index channels, const T* in, const T* gain, const T* bias,
                          T* out, float* means, float* reciprocals) {
  auto const count = static_cast<float>(channels);
  for (index row = first_warp(); row < rows; row += all_warps()) {
    T const* const x = in + row * channels;
    float sum = 0;
    for (index c = lane(); c < channels; c += lanes) sum += wide<T>(x[c]);
    float const mean = warp_sum(sum) / count;
    float squares = 0;
    for (index c = lane(); c < channels; c += lanes) {
      float const from_mean = wide<T>(x[c]) - mean;
      squares += from_mean * from_mean;
    }
    float const reciprocal = 1.0F / sqrtf(warp_sum(squares) / count + 1e-5F);
    normalize_row(channels, x, gain, bias, mean, reciprocal, out + row * channels);
    if (lane() == 0) {
      means[row] = mean;
      reciprocals[row] = reciprocal;
    }
  }
}

template <class T>
__global__ void norm_rows_again(index rows, index channels, const T* in, const T* gain,
                                const T* bias, const float* means, const float* reciprocals,
                                T* out) {
  for (index row = first_warp(); row < rows; row += all_warps())
    normalize_row(channels, in + row * channels, gain, bias, means[row], reciprocals[row],
                  out + row * channels);
}

template <class T>
__global__ void norm_rows_backward(index rows, index channels, const T* in, const T* gain,
                                   const float* means, const float* reciprocals, const T* d_out,
                                   T* d_in) {
  auto const count = static_cast<float>(channels);
  for (index row = first_warp(); row < rows; row += all_warps()) {
    T const* const x = in + row * channels;
    T const* const dy = d_out + row * channels;
    T* const dx = d_in + row * channels;
    float const mean = means[row];
    float const reciprocal = reciprocals[row];
    float sum = 0;
    float product = 0;
    for (index c = lane(); c < channels; c += lanes) {
      float const d = wide<T>(dy[c]) * wide<T>(gain[c]);
      sum += d;
      product += d * (wide<T>(x[c]) - mean) * reciprocal;
    }
    sum = warp_sum(sum) / count;
    product = warp_sum(product) / count;
    for (index c = lane(); c < channels; c += lanes)
      add(dx[c], reciprocal * (wide<T>(dy[c]) * wide<T>(gain[c]) - sum -
                               (wide<T>(x[c]) - mean) * reciprocal * product));
  }
}

// What a row adds to the gradients of gain and bias.
template <class T>
struct norm_terms {
  const T *in, *d_out;
  const float *means, *reciprocals;
  index channels;

  __device__ void operator()(index row, index column, float (&sums)[2]) const {
    float const dy = wide<T>(d_out[row * channels + column]);
    sums[0] += dy * (wide<T>(in[row * channels + column]) - means[row]) * reciprocals[row];
    sums[1] += dy;
  }
};

}  // namespace

template <class T>
void cuda_backend<T>::layer_norm(index rows, const tensor<T>& in, const tensor<T>& gain,
                                 const tensor<T>& bias, tensor<T>& out, row_moments<T>& moments) {
  launch_warps(norm_rows<T>, rows, stream_, rows, gain.size(), in.data(), gain.data(), bias.data(),
               out.data(), moments.mean.data(), moments.reciprocal.data());
}

template <class T>
void cuda_backend<T>::normalize(index rows, const tensor<T>& in, const tensor<T>& gain,
                                const tensor<T>& bias, const row_moments<T>& moments,
                                tensor<T>& out) {
  launch_warps(norm_rows_again<T>, rows, stream_, rows, gain.size(), in.data(), gain.data(),
               bias.data(), moments.mean.data(), moments.reciprocal.data(), out.data());
}

template <class T>
void cuda_backend<T>::layer_norm_backward(index rows, const tensor<T>& in, const tensor<T>& gain,
                                          const row_moments<T>& moments, const tensor<T>& d_out,
                                          tensor<T>& d_in, tensor<T>& d_gain, tensor<T>& d_bias) {
  float const* const means = moments.mean.data();
  float const* const reciprocals = moments.reciprocal.data();
  launch_warps(norm_rows_backward<T>, rows, stream_, rows, gain.size(), in.data(), gain.data(),
               means, reciprocals, d_out.data(), d_in.data());
  launch_columns(rows, gain.size(),
                 norm_terms<T>{in.data(), d_out.data(), means, reciprocals, gain.size()},
                 column_outputs<T, 2>{{d_gain.data(), d_bias.data()}}, stream_);
}

template class cuda_backend<float>;
template class cuda_backend<bf16>;
template class cuda_backend<fp16>;

}  // namespace gpt2
