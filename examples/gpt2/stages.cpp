#include "stages.hpp"

#include <cmath>
#include <numeric>

namespace gpt2 {

namespace {

template <class... Parts>
index total_bytes(const Parts&... parts) {
  return (parts.bytes() + ...);
}

template <class T>
row_moments<T> make_moments(index rows, memory& in) {
  return {{"mean", {rows}, in}, {"reciprocal", {rows}, in}};
}

template <class T>
void linear(backend<T>& on, index rows, const linear_weights<T>& w, const tensor<T>& in,
            tensor<T>& out, store mode = store::overwrite) {
  index const inputs = w.weight.extents()[0];
  index const outputs = w.weight.extents()[1];
  on.multiply(row_major(in.data(), rows, inputs), row_major(w.weight.data(), inputs, outputs),
              row_major(out.data(), rows, outputs), mode, w.bias.data());
}

// Overwrites d_in, adds to d_w.
template <class T>
void linear_backward(backend<T>& on, index rows, const linear_weights<T>& w, const tensor<T>& in,
                     const tensor<T>& d_out, tensor<T>& d_in, linear_weights<T>& d_w) {
  index const inputs = w.weight.extents()[0];
  index const outputs = w.weight.extents()[1];
  auto const dy = row_major(d_out.data(), rows, outputs);
  on.multiply(row_major(in.data(), rows, inputs).transposed(), dy,
              row_major(d_w.weight.data(), inputs, outputs), store::add);
  on.add_rows(rows, d_out, d_w.bias);
  on.multiply(dy, row_major(w.weight.data(), inputs, outputs).transposed(),
              row_major(d_in.data(), rows, inputs));
}

// The batch x heads matrices of one attention, seen in the buffers that hold them.
struct attention_views {
  const config& sizes;
  extent shape;

  // `row_stride` apart, each row holding the channels of all heads.
  template <class T>
  matrix<T> heads(T* first, index row_stride) const {
    index const d = sizes.head_channels();
    return {first, shape.seq, d, row_stride, 1, shape.batch, sizes.heads, shape.seq * row_stride,
            d};
  }

  template <class T>
  matrix<T> query(T* packed) const {
    return heads(packed, 3 * sizes.channels);
  }

  template <class T>
  matrix<T> key(T* packed) const {
    return heads(packed + sizes.channels, 3 * sizes.channels);
  }

  template <class T>
  matrix<T> value(T* packed) const {
    return heads(packed + 2 * sizes.channels, 3 * sizes.channels);
  }

  template <class T>
  matrix<T> square(T* first) const {
    index const s = shape.seq;
    return {first, s, s, s, 1, shape.batch, sizes.heads, sizes.heads * s * s, s * s};
  }

  [[nodiscard]] index matrices() const { return shape.batch * sizes.heads; }

  template <class T>
  [[nodiscard]] T scale() const {
    return T(1) / std::sqrt(static_cast<T>(sizes.head_channels()));
  }
};

template <class T>
void attention(backend<T>& on, attention_views views, block_saved<T>& saved) {
  auto const& qkv = saved.query_key_value;
  auto const probabilities = views.square(saved.probabilities.data());
  on.multiply(views.query(qkv.data()), views.key(qkv.data()).transposed(), probabilities);
  on.causal_softmax(views.matrices(), views.shape.seq, views.scale<T>(), saved.probabilities);
  on.multiply(probabilities, views.value(qkv.data()),
              views.heads(saved.attended.data(), views.sizes.channels));
}

// From the gradient of the attended values in space.narrow to that of query, key and value in
// space.wide.
template <class T>
void attention_backward(backend<T>& on, attention_views views, const block_saved<T>& saved,
                        workspace<T>& space) {
  auto const& qkv = saved.query_key_value;
  auto const d_attended = views.heads(space.narrow.data(), views.sizes.channels);
  auto const d_scores = views.square(space.scores.data());
  T* const d_qkv = space.wide.data();
  on.multiply(views.square(saved.probabilities.data()).transposed(), d_attended,
              views.value(d_qkv));
  on.multiply(d_attended, views.value(qkv.data()).transposed(), d_scores);
  on.causal_softmax_backward(views.matrices(), views.shape.seq, views.scale<T>(),
                             saved.probabilities, space.scores);
  on.multiply(d_scores, views.key(qkv.data()), views.query(d_qkv));
  on.multiply(d_scores.transposed(), views.query(qkv.data()), views.key(d_qkv));
}

}  // namespace

template <class T>
block_saved<T>::block_saved(const config& sizes, extent shape, memory& in)
    : moments_1{make_moments<T>(shape.rows(), in)},
      normed_1{"normed_1", {shape.rows(), sizes.channels}, in},
      query_key_value{"query_key_value", {shape.rows(), 3 * sizes.channels}, in},
      probabilities{"probabilities", {shape.batch * sizes.heads, shape.seq, shape.seq}, in},
      attended{"attended", {shape.rows(), sizes.channels}, in},
      middle{"middle", {shape.rows(), sizes.channels}, in},
      moments_2{make_moments<T>(shape.rows(), in)},
      normed_2{"normed_2", {shape.rows(), sizes.channels}, in},
      raised{"raised", {shape.rows(), 4 * sizes.channels}, in},
      bent{"bent", {shape.rows(), 4 * sizes.channels}, in} {}

template <class T>
index block_saved<T>::bytes() const {
  return total_bytes(moments_1.mean, moments_1.reciprocal, normed_1, query_key_value, probabilities,
                     attended, middle, moments_2.mean, moments_2.reciprocal, normed_2, raised,
                     bent);
}

template <class T>
head_saved<T>::head_saved(const config& sizes, extent shape, memory& in)
    : moments{make_moments<T>(shape.rows(), in)},
      normed{"normed", {shape.rows(), sizes.channels}, in},
      logits{"logits", {shape.rows(), sizes.vocabulary}, in},
      losses{"losses", {shape.rows()}, in} {}

template <class T>
index head_saved<T>::bytes() const {
  return total_bytes(moments.mean, moments.reciprocal, normed, logits, losses);
}

template <class T>
workspace<T>::workspace(const config& sizes, extent shape, memory& in)
    : gradient{"gradient", {shape.rows(), sizes.channels}, in},
      narrow{"narrow", {shape.rows(), sizes.channels}, in},
      wide{"wide", {shape.rows(), 4 * sizes.channels}, in},
      scores{"scores", {shape.batch * sizes.heads, shape.seq, shape.seq}, in} {}

template <class T>
index workspace<T>::bytes() const {
  return total_bytes(gradient, narrow, wide, scores);
}

template <class T>
void embedding_forward(backend<T>& on, extent shape, const token* tokens, const weights<T>& w,
                       tensor<T>& out) {
  on.embed(shape.rows(), shape.seq, tokens, w.of_token, w.of_position, out);
}

template <class T>
void embedding_backward(backend<T>& on, extent shape, const token* tokens,
                        const tensor<T>& gradient, weights<T>& d_w) {
  on.embed_backward(shape.rows(), shape.seq, tokens, gradient, d_w.of_token, d_w.of_position);
}

template <class T>
void block_forward(backend<T>& on, const config& sizes, extent shape, const block_weights<T>& w,
                   const tensor<T>& in, tensor<T>& out, block_saved<T>& saved) {
  index const rows = shape.rows();
  on.layer_norm(rows, in, w.norm_1.gain, w.norm_1.bias, saved.normed_1, saved.moments_1);
  linear(on, rows, w.query_key_value, saved.normed_1, saved.query_key_value);
  attention(on, {sizes, shape}, saved);
  on.copy(rows * sizes.channels, in, saved.middle);
  linear(on, rows, w.projection, saved.attended, saved.middle, store::add);

  on.layer_norm(rows, saved.middle, w.norm_2.gain, w.norm_2.bias, saved.normed_2, saved.moments_2);
  linear(on, rows, w.up, saved.normed_2, saved.raised);
  on.gelu(rows * 4 * sizes.channels, saved.raised, saved.bent);
  on.copy(rows * sizes.channels, saved.middle, out);
  linear(on, rows, w.down, saved.bent, out, store::add);
}

template <class T>
void block_backward(backend<T>& on, const config& sizes, extent shape, const block_weights<T>& w,
                    const tensor<T>& in, const block_saved<T>& saved, tensor<T>& gradient,
                    block_weights<T>& d_w, workspace<T>& space) {
  index const rows = shape.rows();
  linear_backward(on, rows, w.down, saved.bent, gradient, space.wide, d_w.down);
  on.gelu_backward(rows * 4 * sizes.channels, saved.raised, space.wide);
  linear_backward(on, rows, w.up, saved.normed_2, space.wide, space.narrow, d_w.up);
  on.layer_norm_backward(rows, saved.middle, w.norm_2.gain, saved.moments_2, space.narrow, gradient,
                         d_w.norm_2.gain, d_w.norm_2.bias);

  linear_backward(on, rows, w.projection, saved.attended, gradient, space.narrow, d_w.projection);
  attention_backward(on, {sizes, shape}, saved, space);
  linear_backward(on, rows, w.query_key_value, saved.normed_1, space.wide, space.narrow,
                  d_w.query_key_value);
  on.layer_norm_backward(rows, in, w.norm_1.gain, saved.moments_1, space.narrow, gradient,
                         d_w.norm_1.gain, d_w.norm_1.bias);
}

template <class T>
void head_forward(backend<T>& on, extent shape, const weights<T>& w, const tensor<T>& in,
                  head_saved<T>& saved) {
  index const vocabulary = w.of_token.extents()[0];
  index const channels = w.of_token.extents()[1];
  on.layer_norm(shape.rows(), in, w.norm.gain, w.norm.bias, saved.normed, saved.moments);
  on.multiply(row_major(saved.normed.data(), shape.rows(), channels),
              row_major(w.of_token.data(), vocabulary, channels).transposed(),
              row_major(saved.logits.data(), shape.rows(), vocabulary));
}

template <class T>
double head_loss(backend<T>& on, extent shape, const token* targets, head_saved<T>& saved) {
  index const rows = shape.rows();
  on.cross_entropy(rows, targets, T(1) / static_cast<T>(rows), nullptr, saved.logits, saved.losses);
  std::vector<T> losses(static_cast<std::size_t>(rows));
  saved.losses.read(0, losses.data(), rows);
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(rows);
}

template <class T>
void head_backward(backend<T>& on, extent shape, const weights<T>& w, const tensor<T>& in,
                   const head_saved<T>& saved, tensor<T>& gradient, weights<T>& d_w,
                   workspace<T>& space) {
  index const rows = shape.rows();
  index const vocabulary = w.of_token.extents()[0];
  index const channels = w.of_token.extents()[1];
  auto const d_logits = row_major(saved.logits.data(), rows, vocabulary);
  on.multiply(d_logits.transposed(), row_major(saved.normed.data(), rows, channels),
              row_major(d_w.of_token.data(), vocabulary, channels), store::add);
  on.multiply(d_logits, row_major(w.of_token.data(), vocabulary, channels),
              row_major(space.narrow.data(), rows, channels));
  on.set_zero(gradient);
  on.layer_norm_backward(rows, in, w.norm.gain, saved.moments, space.narrow, gradient,
                         d_w.norm.gain, d_w.norm.bias);
}

#define GPT2_STAGES(T)                                                                      \
  template struct block_saved<T>;                                                           \
  template struct head_saved<T>;                                                            \
  template struct workspace<T>;                                                             \
  template void embedding_forward(backend<T>&, extent, const token*, const weights<T>&,     \
                                  tensor<T>&);                                              \
  template void embedding_backward(backend<T>&, extent, const token*, const tensor<T>&,     \
                                   weights<T>&);                                            \
  template void block_forward(backend<T>&, const config&, extent, const block_weights<T>&,  \
                              const tensor<T>&, tensor<T>&, block_saved<T>&);               \
  template void block_backward(backend<T>&, const config&, extent, const block_weights<T>&, \
                               const tensor<T>&, const block_saved<T>&, tensor<T>&,         \
                               block_weights<T>&, workspace<T>&);                           \
  template void head_forward(backend<T>&, extent, const weights<T>&, const tensor<T>&,      \
                             head_saved<T>&);                                               \
  template double head_loss(backend<T>&, extent, const token*, head_saved<T>&);             \
  template void head_backward(backend<T>&, extent, const weights<T>&, const tensor<T>&,     \
                              const head_saved<T>&, tensor<T>&, weights<T>&, workspace<T>&);

GPT2_STAGES(float)
GPT2_STAGES(double)

}  // namespace gpt2
