#include "cuda_backend.cuh"
#include "cuda_warps.cuh"

namespace gpt2 {

namespace {

__device__ void normalize_row(index channels, const float* x, const float* gain, const float* bias,
                              float mean, float reciprocal, float* y) {
  for (index c = lane(); c < channels; c += lanes)
    y[c] = (x[c] - mean) * reciprocal * gain[c] + bias[c];
}

__global__ void norm_rows(index rows, index channels, const float* in, const float* gain,
                          const float* bias, float* out, float* means, float* reciprocals) {
  auto const count = static_cast<float>(channels);
  for (index row = first_warp(); row < rows; row += all_warps()) {
    float const* const x = in + row * channels;
    float sum = 0;
    for (index c = lane(); c < channels; c += lanes) sum += x[c];
    float const mean = warp_sum(sum) / count;
    float squares = 0;
    for (index c = lane(); c < channels; c += lanes) squares += (x[c] - mean) * (x[c] - mean);
    float const reciprocal = 1.0F / sqrtf(warp_sum(squares) / count + 1e-5F);
    normalize_row(channels, x, gain, bias, mean, reciprocal, out + row * channels);
    if (lane() == 0) {
      means[row] = mean;
      reciprocals[row] = reciprocal;
    }
  }
}

__global__ void norm_rows_again(index rows, index channels, const float* in, const float* gain,
                                const float* bias, const float* means, const float* reciprocals,
                                float* out) {
  for (index row = first_warp(); row < rows; row += all_warps())
    normalize_row(channels, in + row * channels, gain, bias, means[row], reciprocals[row],
                  out + row * channels);
}

__global__ void norm_rows_backward(index rows, index channels, const float* in, const float* gain,
                                   const float* means, const float* reciprocals, const float* d_out,
                                   float* d_in) {
  auto const count = static_cast<float>(channels);
  for (index row = first_warp(); row < rows; row += all_warps()) {
    float const* const x = in + row * channels;
    float const* const dy = d_out + row * channels;
    float* const dx = d_in + row * channels;
    float const mean = means[row];
    float const reciprocal = reciprocals[row];
    float sum = 0;
    float product = 0;
    for (index c = lane(); c < channels; c += lanes) {
      float const d = dy[c] * gain[c];
      sum += d;
      product += d * (x[c] - mean) * reciprocal;
    }
    sum = warp_sum(sum) / count;
    product = warp_sum(product) / count;
    for (index c = lane(); c < channels; c += lanes)
      dx[c] += reciprocal * (dy[c] * gain[c] - sum - (x[c] - mean) * reciprocal * product);
  }
}

// What a row adds to the gradients of gain and bias.
struct norm_terms {
  const float *in, *d_out, *means, *reciprocals;
  index channels;

  __device__ void operator()(index row, index column, float (&sums)[2]) const {
    float const dy = d_out[row * channels + column];
    sums[0] += dy * (in[row * channels + column] - means[row]) * reciprocals[row];
    sums[1] += dy;
  }
};

}  // namespace

void cuda_backend::layer_norm(index rows, const tensor<float>& in, const tensor<float>& gain,
                              const tensor<float>& bias, tensor<float>& out,
                              row_moments<float>& moments) {
  launch_warps(norm_rows, rows, stream_, rows, gain.size(), in.data(), gain.data(), bias.data(),
               out.data(), moments.mean.data(), moments.reciprocal.data());
}

void cuda_backend::normalize(index rows, const tensor<float>& in, const tensor<float>& gain,
                             const tensor<float>& bias, const row_moments<float>& moments,
                             tensor<float>& out) {
  launch_warps(norm_rows_again, rows, stream_, rows, gain.size(), in.data(), gain.data(),
               bias.data(), moments.mean.data(), moments.reciprocal.data(), out.data());
}

void cuda_backend::layer_norm_backward(index rows, const tensor<float>& in,
                                       const tensor<float>& gain, const row_moments<float>& moments,
                                       const tensor<float>& d_out, tensor<float>& d_in,
                                       tensor<float>& d_gain, tensor<float>& d_bias) {
  float const* const means = moments.mean.data();
  float const* const reciprocals = moments.reciprocal.data();
  launch_warps(norm_rows_backward, rows, stream_, rows, gain.size(), in.data(), gain.data(), means,
               reciprocals, d_out.data(), d_in.data());
  launch_columns(rows, gain.size(),
                 norm_terms{in.data(), d_out.data(), means, reciprocals, gain.size()},
                 column_outputs<2>{{d_gain.data(), d_bias.data()}}, stream_);
}

}  // namespace gpt2
