#include "cuda_backend.cuh"
#include "cuda_warps.cuh"

namespace gpt2 {

namespace {

__global__ void embed_rows(index rows, index seq, index channels, const token* tokens,
                           const float* of_token, const float* of_position, float* out) {
  for (index row = first_warp(); row < rows; row += all_warps()) {
    float const* const t = of_token + tokens[row] * channels;
    float const* const p = of_position + row % seq * channels;
    float* const y = out + row * channels;
    for (index c = lane(); c < channels; c += lanes) y[c] = t[c] + p[c];
  }
}

// A warp owns 32 channels of one token. It looks for the token in 32 rows at a time, and adds those
// rows in their order.
__global__ void add_to_tokens(index rows, index vocabulary, index channels, const token* tokens,
                              const float* d_out, float* d_of_token) {
  index const parts = (channels + lanes - 1) / lanes;
  for (index item = first_warp(); item < vocabulary * parts; item += all_warps()) {
    index const wanted = item / parts;
    index const channel = item % parts * lanes + lane();
    float sum = 0;
    for (index first = 0; first < rows; first += lanes) {
      bool const here = first + lane() < rows && tokens[first + lane()] == wanted;
      for (unsigned found = __ballot_sync(~0U, here); found != 0; found &= found - 1) {
        index const row = first + __ffs(static_cast<int>(found)) - 1;
        if (channel < channels) sum += d_out[row * channels + channel];
      }
    }
    if (channel < channels) d_of_token[wanted * channels + channel] += sum;
  }
}

__global__ void add_to_positions(index rows, index seq, index channels, const float* d_out,
                                 float* d_of_position) {
  for (index position = first_warp(); position < seq; position += all_warps())
    for (index c = lane(); c < channels; c += lanes) {
      float sum = 0;
      for (index row = position; row < rows; row += seq) sum += d_out[row * channels + c];
      d_of_position[position * channels + c] += sum;
    }
}

}  // namespace

void cuda_backend::embed(index rows, index seq, const token* tokens, const tensor<float>& of_token,
                         const tensor<float>& of_position, tensor<float>& out) {
  launch_warps(embed_rows, rows, stream_, rows, seq, of_token.extents()[1], tokens, of_token.data(),
               of_position.data(), out.data());
}

void cuda_backend::embed_backward(index rows, index seq, const token* tokens,
                                  const tensor<float>& d_out, tensor<float>& d_of_token,
                                  tensor<float>& d_of_position) {
  index const vocabulary = d_of_token.extents()[0];
  index const channels = d_of_token.extents()[1];
  launch_warps(add_to_tokens, vocabulary * divide_up(channels, lanes), stream_, rows, vocabulary,
               channels, tokens, d_out.data(), d_of_token.data());
  launch_warps(add_to_positions, seq, stream_, rows, seq, channels, d_out.data(),
               d_of_position.data());
}

}  // namespace gpt2
