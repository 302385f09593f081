#include "cuda_backend.cuh"
#include "cuda_warps.cuh"

namespace gpt2 {

namespace {

__device__ float largest_of(const float* values, index count) {
  float largest = -INFINITY;
  for (index i = lane(); i < count; i += lanes) largest = fmaxf(largest, values[i]);
  return warp_max(largest);
}

__global__ void softmax_rows(index rows, index seq, float scale, float* scores) {
  for (index row = first_warp(); row < rows; row += all_warps()) {
    float* const s = scores + row * seq;
    index const seen = row % seq + 1;
    float const largest = largest_of(s, seen);
    float sum = 0;
    for (index i = lane(); i < seen; i += lanes) {
      s[i] = expf(scale * (s[i] - largest));
      sum += s[i];
    }
    float const share = 1.0F / warp_sum(sum);
    for (index i = lane(); i < seq; i += lanes) s[i] = i < seen ? s[i] * share : 0.0F;
  }
}

__global__ void softmax_rows_backward(index rows, index seq, float scale,
                                      const float* probabilities, float* gradient) {
  for (index row = first_warp(); row < rows; row += all_warps()) {
    float const* const p = probabilities + row * seq;
    float* const d = gradient + row * seq;
    index const seen = row % seq + 1;
    float sum = 0;
    for (index i = lane(); i < seen; i += lanes) sum += p[i] * d[i];
    float const mean = warp_sum(sum);
    for (index i = lane(); i < seq; i += lanes)
      d[i] = i < seen ? scale * p[i] * (d[i] - mean) : 0.0F;
  }
}

__global__ void cross_entropy_rows(index rows, index vocabulary, const token* targets, float scale,
                                   float* logits, float* losses) {
  for (index row = first_warp(); row < rows; row += all_warps()) {
    float* const z = logits + row * vocabulary;
    index const target = targets[row];
    float const largest = largest_of(z, vocabulary);
    float of_target = 0;
    float sum = 0;
    for (index i = lane(); i < vocabulary; i += lanes) {
      float const below = z[i] - largest;
      if (i == target) of_target = below;
      z[i] = expf(below);
      sum += z[i];
    }
    sum = warp_sum(sum);
    of_target = warp_sum(of_target);
    float const share = scale / sum;
    for (index i = lane(); i < vocabulary; i += lanes)
      z[i] = z[i] * share - (i == target ? scale : 0.0F);
    if (lane() == 0) losses[row] = logf(sum) - of_target;
  }
}

}  // namespace

void cuda_backend::causal_softmax(index matrices, index seq, float scale, tensor<float>& scores) {
  launch_warps(softmax_rows, matrices * seq, stream_, matrices * seq, seq, scale, scores.data());
}

void cuda_backend::causal_softmax_backward(index matrices, index seq, float scale,
                                           const tensor<float>& probabilities,
                                           tensor<float>& gradient) {
  launch_warps(softmax_rows_backward, matrices * seq, stream_, matrices * seq, seq, scale,
               probabilities.data(), gradient.data());
}

void cuda_backend::cross_entropy(index rows, const token* targets, float scale,
                                 tensor<float>& logits, tensor<float>& losses) {
  launch_warps(cross_entropy_rows, rows, stream_, rows, logits.extents()[1], targets, scale,
               logits.data(), losses.data());
}

}  // namespace gpt2
