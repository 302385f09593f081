#include "cuda_backend.cuh"
#include "cuda_warps.cuh"

namespace gpt2 {

namespace {

template <class T>
__device__ float largest_of(const T* values, index count) {
  float largest = -INFINITY;
  for (index i = lane(); i < count; i += lanes) largest = fmaxf(largest, wide<T>(values[i]));
  return warp_max(largest);
}

template <class T>
__global__ void softmax_rows(index rows, index seq, float scale, T* scores) {
  for (index row = first_warp(); row < rows; row += all_warps()) {
    T* const s = scores + row * seq;
    index const seen = row % seq + 1;
    float const largest = largest_of(s, seen);
    float sum = 0;
    for (index i = lane(); i < seen; i += lanes) sum += expf(scale * (wide<T>(s[i]) - largest));
    float const share = 1.0F / warp_sum(sum);
    for (index i = lane(); i < seq; i += lanes)
      s[i] = T(i < seen ? expf(scale * (wide<T>(s[i]) - largest)) * share : 0.0F);
  }
}

template <class T>
__global__ void softmax_rows_backward(index rows, index seq, float scale, const T* probabilities,
                                      T* gradient) {
  for (index row = first_warp(); row < rows; row += all_warps()) {
    T const* const p = probabilities + row * seq;
    T* const d = gradient + row * seq;
    index const seen = row % seq + 1;
    float sum = 0;
    for (index i = lane(); i < seen; i += lanes) sum += wide<T>(p[i]) * wide<T>(d[i]);
    float const mean = warp_sum(sum);
    for (index i = lane(); i < seq; i += lanes)
      d[i] = T(i < seen ? scale * wide<T>(p[i]) * (wide<T>(d[i]) - mean) : 0.0F);
  }
}

template <class T>
__global__ void cross_entropy_rows(index rows, index vocabulary, const token* targets, float scale,
                                   const float* loss_scale, T* logits, float* losses) {
  if (loss_scale != nullptr) scale *= *loss_scale;
  for (index row = first_warp(); row < rows; row += all_warps()) {
    T* const z = logits + row * vocabulary;
    index const target = targets[row];
    float const largest = largest_of(z, vocabulary);
    float of_target = 0;
    float sum = 0;
    for (index i = lane(); i < vocabulary; i += lanes) {
      float const below = wide<T>(z[i]) - largest;
      if (i == target) of_target = below;
      sum += expf(below);
    }
    sum = warp_sum(sum);
    of_target = warp_sum(of_target);
    float const share = scale / sum;
    for (index i = lane(); i < vocabulary; i += lanes)
      z[i] = T(expf(wide<T>(z[i]) - largest) * share - (i == target ? scale : 0.0F));
    if (lane() == 0) losses[row] = logf(sum) - of_target;
  }
}

}  // namespace

template <class T>
void cuda_backend<T>::causal_softmax(index matrices, index seq, float scale, tensor<T>& scores) {
  launch_warps(softmax_rows<T>, matrices * seq, stream_, matrices * seq, seq, scale, scores.data());
}

template <class T>
void cuda_backend<T>::causal_softmax_backward(index matrices, index seq, float scale,
                                              const tensor<T>& probabilities, tensor<T>& gradient) {
  launch_warps(softmax_rows_backward<T>, matrices * seq, stream_, matrices * seq, seq, scale,
               probabilities.data(), gradient.data());
}

template <class T>
void cuda_backend<T>::cross_entropy(index rows, const token* targets, float scale,
                                    const float* loss_scale, tensor<T>& logits,
                                    tensor<float>& losses) {
  launch_warps(cross_entropy_rows<T>, rows, stream_, rows, logits.extents()[1], targets, scale,
               loss_scale, logits.data(), losses.data());
}

template class cuda_backend<float>;
template class cuda_backend<bf16>;
template class cuda_backend<fp16>;

}  // namespace gpt2
