#include "cuda_backend.cuh"
#include "cuda_warps.cuh"

namespace gpt2 {

namespace {

template <class T>
__global__ void embed_rows(index rows, index seq, index channels, const token* tokens,
                           const T* of_token, const T* of_position, T* out) {
  for (index row = first_warp(); row < rows; row += all_warps()) {
    T const* const t = of_token + tokens[row] * channels;
    T const* const p = of_position + row % seq * channels;
    T* const y = out + row * channels;
    for (index c = lane(); c < channels; c += lanes) y[c] = T(wide<T>(t[c]) + wide<T>(p[c]));
  }
}

// A warp owns 32 channels of one token. It looks for the token in 32 rows at a time, and adds those
// rows in their order.
template <class T>
__global__ void add_to_tokens(index rows, index vocabulary, index channels, const token* tokens,
                              const T* d_out, T* d_of_token) {
  index const parts = (channels + lanes - 1) / lanes;
  for (index item = first_warp(); item < vocabulary * parts; item += all_warps()) {
    index const wanted = item / parts;
    index const channel = item % parts * lanes + lane();
    float sum = 0;
    for (index first = 0; first < rows; first += lanes) {
      bool const here = first + lane() < rows && tokens[first + lane()] == wanted;
      for (unsigned found = __ballot_sync(~0U, here); found != 0; found &= found - 1) {
        index const row = first + __ffs(static_cast<int>(found)) - 1;
        if (channel < channels) sum += wide<T>(d_out[row * channels + channel]);
      }
    }
    if (channel < channels) add(d_of_token[wanted * channels + channel], sum);
  }
}

template <class T>
__global__ void add_to_positions(index rows, index seq, index channels, const T* d_out,
                                 T* d_of_position) {
  for (index position = first_warp(); position < seq; position += all_warps())
    for (index c = lane(); c < channels; c += lanes) {
      float sum = 0;
      for (index row = position; row < rows; row += seq) sum += wide<T>(d_out[row * channels + c]);
      add(d_of_position[position * channels + c], sum);
    }
}

}  // namespace

template <class T>
void cuda_backend<T>::embed(index rows, index seq, const token* tokens, const tensor<T>& of_token,
                            const tensor<T>& of_position, tensor<T>& out) {
  launch_warps(embed_rows<T>, rows, stream_, rows, seq, of_token.extents()[1], tokens,
               of_token.data(), of_position.data(), out.data());
}

template <class T>
void cuda_backend<T>::embed_backward(index rows, index seq, const token* tokens,
                                     const tensor<T>& d_out, tensor<T>& d_of_token,
                                     tensor<T>& d_of_position) {
  index const vocabulary = d_of_token.extents()[0];
  index const channels = d_of_token.extents()[1];
  launch_warps(add_to_tokens<T>, vocabulary * divide_up(channels, lanes), stream_, rows, vocabulary,
               channels, tokens, d_out.data(), d_of_token.data());
  launch_warps(add_to_positions<T>, seq, stream_, rows, seq, channels, d_out.data(),
               d_of_position.data());
}

template class cuda_backend<float>;
template class cuda_backend<bf16>;
template class cuda_backend<fp16>;

}  // namespace gpt2
