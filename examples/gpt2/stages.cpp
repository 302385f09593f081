#include "stages.hpp"

#include <cmath>
#include <numeric>

namespace gpt2 {

namespace {

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
  config sizes;
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
  [[nodiscard]] wide<T> scale() const {
    return wide<T>(1) / std::sqrt(static_cast<wide<T>>(sizes.head_channels()));
  }
};

// Scores, then their softmax.
template <class T>
void attend(backend<T>& on, const attention_views& views, const tensor<T>& query_key_value,
            tensor<T>& probabilities) {
  on.multiply(views.query(query_key_value.data()), views.key(query_key_value.data()).transposed(),
              views.square(probabilities.data()));
  on.causal_softmax(views.matrices(), views.shape.seq, views.scale<T>(), probabilities);
}

// From the gradient of the attended values to that of query, key and value.
template <class T>
void attention_backward(backend<T>& on, const attention_views& views,
                        const tensor<T>& query_key_value, const tensor<T>& probabilities,
                        const tensor<T>& d_attended, tensor<T>& d_query_key_value,
                        tensor<T>& d_scores) {
  T const* const qkv = query_key_value.data();
  T* const d_qkv = d_query_key_value.data();
  auto const d_out = views.heads(d_attended.data(), views.sizes.channels);
  auto const d_square = views.square(d_scores.data());
  on.multiply(views.square(probabilities.data()).transposed(), d_out, views.value(d_qkv));
  on.multiply(d_out, views.value(qkv).transposed(), d_square);
  on.causal_softmax_backward(views.matrices(), views.shape.seq, views.scale<T>(), probabilities,
                             d_scores);
  on.multiply(d_square, views.key(qkv), views.query(d_qkv));
  on.multiply(d_square.transposed(), views.query(qkv), views.key(d_qkv));
}

// The kept tensor, or else one in scratch for as long as this lives.
template <class T>
class kept_or_lent {
 public:
  kept_or_lent(tensor<T>& kept, std::vector<index> extents, memory& scratch) : at_{&kept} {
    if (kept.size() != 0) return;
    lent_ = tensor<T>{"lent", std::move(extents), scratch};
    at_ = &lent_;
  }
  kept_or_lent(const kept_or_lent&) = delete;
  kept_or_lent& operator=(const kept_or_lent&) = delete;

  [[nodiscard]] bool kept() const { return at_ != &lent_; }
  tensor<T>& operator*() { return *at_; }

 private:
  tensor<T> lent_;
  tensor<T>* at_;
};

// A block drops in two places: what attention adds to its input, and what the rest adds.
dropout in_second_place(const dropout& drop, const block_extents& of) {
  return {drop.share, drop.key, drop.first + of.shape.rows() * of.sizes.channels};
}

// out = base + linear(in), where base may be out.
template <class T>
void add_linear(backend<T>& on, const block_extents& of, const linear_weights<T>& w,
                const dropout& drop, const tensor<T>& in, const tensor<T>& base, tensor<T>& out,
                memory& scratch) {
  index const count = of.shape.rows() * of.sizes.channels;
  if (&base != &out) on.copy(count, base, out);
  if (drop.share == 0) return linear(on, of.shape.rows(), w, in, out, store::add);
  tensor<T> added{"added", of.narrow(), scratch};
  linear(on, of.shape.rows(), w, in, added);
  on.drop(count, drop, added, out, store::add);
}

// middle = in + what attention makes of it.
template <class T>
void attention_half(backend<T>& on, const block_extents& of, const block_weights<T>& w,
                    const dropout& drop, const tensor<T>& in, tensor<T>& middle,
                    block_saved<T>& saved, memory& scratch) {
  index const rows = of.shape.rows();
  kept_or_lent<T> attended{saved.attended, of.narrow(), scratch};
  {
    attention_views const views{of.sizes, of.shape};
    kept_or_lent<T> qkv{saved.query_key_value, of.packed(), scratch};
    {
      kept_or_lent<T> normed{saved.normed_1, of.narrow(), scratch};
      on.layer_norm(rows, in, w.norm_1.gain, w.norm_1.bias, *normed, saved.moments_1);
      linear(on, rows, w.query_key_value, *normed, *qkv);
    }
    kept_or_lent<T> probabilities{saved.probabilities, of.squares(), scratch};
    attend(on, views, *qkv, *probabilities);
    on.multiply(views.square(std::as_const(*probabilities).data()),
                views.value(std::as_const(*qkv).data()),
                views.heads((*attended).data(), of.sizes.channels));
  }
  add_linear(on, of, w.projection, drop, *attended, in, middle, scratch);
}

// out = middle + what the wide layer makes of it, where out is wanted.
template <class T>
void wide_half(backend<T>& on, const block_extents& of, const block_weights<T>& w,
               const dropout& drop, const tensor<T>& middle, tensor<T>* out, block_saved<T>& saved,
               memory& scratch) {
  index const rows = of.shape.rows();
  kept_or_lent<T> raised{saved.raised, of.wide(), scratch};
  {
    kept_or_lent<T> normed{saved.normed_2, of.narrow(), scratch};
    on.layer_norm(rows, middle, w.norm_2.gain, w.norm_2.bias, *normed, saved.moments_2);
    linear(on, rows, w.up, *normed, *raised);
  }
  auto const bend_into = [&](tensor<T>& bent) {
    on.gelu(rows * 4 * of.sizes.channels, *raised, bent);
    if (out != nullptr) add_linear(on, of, w.down, drop, bent, middle, *out, scratch);
  };
  if (out == nullptr && saved.bent.size() == 0) return;
  if (!raised.kept()) return bend_into(*raised);
  kept_or_lent<T> bent{saved.bent, of.wide(), scratch};
  bend_into(*bent);
}

// The layer norm's output, which was kept or is computed again from its moments.
template <class T>
const tensor<T>& norm_again(backend<T>& on, index rows, const norm_weights<T>& w,
                            const tensor<T>& in, const row_moments<T>& moments,
                            kept_or_lent<T>& normed) {
  if (!normed.kept()) on.normalize(rows, in, w.gain, w.bias, moments, *normed);
  return *normed;
}

// From the gradient of the block's output, which it may change, to that of `middle`, which it adds
// to d_middle.
template <class T>
void wide_half_backward(backend<T>& on, const block_extents& of, const block_weights<T>& w,
                        const dropout& drop, block_saved<T>& saved, tensor<T>& d_out,
                        tensor<T>& d_middle, block_weights<T>& d_w, memory& scratch) {
  index const rows = of.shape.rows();
  index const count = rows * of.sizes.channels;
  tensor<T> d_wide{"d_wide", of.wide(), scratch};
  {
    kept_or_lent<T> bent{saved.bent, of.wide(), scratch};
    if (!bent.kept()) on.gelu(4 * count, saved.raised, *bent);
    if (drop.share != 0) on.drop(count, drop, d_out, d_out, store::overwrite);
    linear_backward(on, rows, w.down, *bent, d_out, d_wide, d_w.down);
  }
  on.gelu_backward(4 * count, saved.raised, d_wide);
  tensor<T> d_narrow{"d_narrow", of.narrow(), scratch};
  kept_or_lent<T> lent{saved.normed_2, of.narrow(), scratch};
  auto const& normed = norm_again(on, rows, w.norm_2, saved.middle, saved.moments_2, lent);
  linear_backward(on, rows, w.up, normed, d_wide, d_narrow, d_w.up);
  on.layer_norm_backward(rows, saved.middle, w.norm_2.gain, saved.moments_2, d_narrow, d_middle,
                         d_w.norm_2.gain, d_w.norm_2.bias);
}

// Likewise from the gradient of `middle` in d_in to that of the block's input there. `spare` is
// free to be written over.
template <class T>
void attention_half_backward(backend<T>& on, const block_extents& of, const block_weights<T>& w,
                             const dropout& drop, const tensor<T>& in, block_saved<T>& saved,
                             tensor<T>& spare, tensor<T>& d_in, block_weights<T>& d_w,
                             memory& scratch) {
  index const rows = of.shape.rows();
  tensor<T> d_packed{"d_packed", of.packed(), scratch};
  tensor<T> d_narrow{"d_narrow", of.narrow(), scratch};
  {
    attention_views const views{of.sizes, of.shape};
    bool const drops = drop.share != 0;
    if (drops) on.drop(rows * of.sizes.channels, drop, d_in, spare, store::overwrite);
    linear_backward(on, rows, w.projection, saved.attended, drops ? spare : d_in, d_narrow,
                    d_w.projection);
    kept_or_lent<T> probabilities{saved.probabilities, of.squares(), scratch};
    if (!probabilities.kept()) attend(on, views, saved.query_key_value, *probabilities);
    tensor<T> d_scores{"d_scores", of.squares(), scratch};
    attention_backward(on, views, saved.query_key_value, *probabilities, d_narrow, d_packed,
                       d_scores);
  }
  kept_or_lent<T> lent{saved.normed_1, of.narrow(), scratch};
  auto const& normed = norm_again(on, rows, w.norm_1, in, saved.moments_1, lent);
  linear_backward(on, rows, w.query_key_value, normed, d_packed, d_narrow, d_w.query_key_value);
  on.layer_norm_backward(rows, in, w.norm_1.gain, saved.moments_1, d_narrow, d_in, d_w.norm_1.gain,
                         d_w.norm_1.bias);
}

}  // namespace

template <class T>
block_saved<T>::block_saved(const block_extents& of, block_choice keep, memory& in) {
  auto const kept = [&](bool wanted, const char* name, std::vector<index> extents) {
    return wanted ? tensor<T>{name, std::move(extents), in} : tensor<T>{};
  };
  moments_1 = make_moments<T>(of.shape.rows(), in);
  moments_2 = make_moments<T>(of.shape.rows(), in);
  query_key_value = kept(keep.products, "query_key_value", of.packed());
  attended = kept(keep.products, "attended", of.narrow());
  middle = kept(keep.products, "middle", of.narrow());
  raised = kept(keep.products, "raised", of.wide());
  probabilities = kept(keep.probabilities, "probabilities", of.squares());
  normed_1 = kept(keep.elementwise, "normed_1", of.narrow());
  normed_2 = kept(keep.elementwise, "normed_2", of.narrow());
  bent = kept(keep.elementwise, "bent", of.wide());
}

template <class T>
head_saved<T>::head_saved(const config& sizes, extent shape, memory& in)
    : moments{make_moments<T>(shape.rows(), in)},
      normed{"normed", {shape.rows(), sizes.channels}, in},
      logits{"logits", {shape.rows(), sizes.vocabulary}, in},
      losses{"losses", {shape.rows()}, in} {}

template <class T>
void embedding_forward(backend<T>& on, extent shape, const token* tokens, const weights<T>& w,
                       const dropout& drop, tensor<T>& out) {
  on.embed(shape.rows(), shape.seq, tokens, w.of_token, w.of_position, out);
  if (drop.share != 0)
    on.drop(shape.rows() * w.of_token.extents()[1], drop, out, out, store::overwrite);
}

template <class T>
void embedding_backward(backend<T>& on, extent shape, const token* tokens, const dropout& drop,
                        tensor<T>& d_out, weights<T>& d_w) {
  if (drop.share != 0)
    on.drop(shape.rows() * d_w.of_token.extents()[1], drop, d_out, d_out, store::overwrite);
  on.embed_backward(shape.rows(), shape.seq, tokens, d_out, d_w.of_token, d_w.of_position);
}

template <class T>
void block_forward(backend<T>& on, const block_extents& of, const block_weights<T>& w,
                   const dropout& drop, const tensor<T>& in, tensor<T>* out, block_saved<T>& saved,
                   memory& scratch) {
  tensor<T>& middle = saved.middle.size() != 0 ? saved.middle : *out;
  attention_half(on, of, w, drop, in, middle, saved, scratch);
  wide_half(on, of, w, in_second_place(drop, of), middle, out, saved, scratch);
}

template <class T>
void block_backward(backend<T>& on, const block_extents& of, const block_weights<T>& w,
                    const dropout& drop, const tensor<T>& in, block_saved<T>& saved,
                    tensor<T>& d_out, tensor<T>& d_in, block_weights<T>& d_w, memory& scratch) {
  on.copy(of.shape.rows() * of.sizes.channels, d_out, d_in);
  wide_half_backward(on, of, w, in_second_place(drop, of), saved, d_out, d_in, d_w, scratch);
  attention_half_backward(on, of, w, drop, in, saved, d_out, d_in, d_w, scratch);
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
double head_loss(backend<T>& on, extent shape, const token* targets, const float* loss_scale,
                 head_saved<T>& saved) {
  index const rows = shape.rows();
  on.cross_entropy(rows, targets, wide<T>(1) / static_cast<wide<T>>(rows), loss_scale, saved.logits,
                   saved.losses);
  std::vector<wide<T>> losses(static_cast<std::size_t>(rows));
  saved.losses.read(0, losses.data(), rows);
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(rows);
}

template <class T>
void head_backward(backend<T>& on, extent shape, const weights<T>& w, const tensor<T>& in,
                   const head_saved<T>& saved, tensor<T>& d_in, weights<T>& d_w, memory& scratch) {
  index const rows = shape.rows();
  index const vocabulary = w.of_token.extents()[0];
  index const channels = w.of_token.extents()[1];
  auto const d_logits = row_major(saved.logits.data(), rows, vocabulary);
  on.multiply(d_logits.transposed(), row_major(saved.normed.data(), rows, channels),
              row_major(d_w.of_token.data(), vocabulary, channels), store::add);
  tensor<T> d_normed{"d_normed", {rows, channels}, scratch};
  on.multiply(d_logits, row_major(w.of_token.data(), vocabulary, channels),
              row_major(d_normed.data(), rows, channels));
  on.set_zero(d_in);
  on.layer_norm_backward(rows, in, w.norm.gain, saved.moments, d_normed, d_in, d_w.norm.gain,
                         d_w.norm.bias);
}

#define GPT2_STAGES(T)                                                                            \
  template struct block_saved<T>;                                                                 \
  template struct head_saved<T>;                                                                  \
  template void embedding_forward(backend<T>&, extent, const token*, const weights<T>&,           \
                                  const dropout&, tensor<T>&);                                    \
  template void embedding_backward(backend<T>&, extent, const token*, const dropout&, tensor<T>&, \
                                   weights<T>&);                                                  \
  template void block_forward(backend<T>&, const block_extents&, const block_weights<T>&,         \
                              const dropout&, const tensor<T>&, tensor<T>*, block_saved<T>&,      \
                              memory&);                                                           \
  template void block_backward(backend<T>&, const block_extents&, const block_weights<T>&,        \
                               const dropout&, const tensor<T>&, block_saved<T>&, tensor<T>&,     \
                               tensor<T>&, block_weights<T>&, memory&);                           \
  template void head_forward(backend<T>&, extent, const weights<T>&, const tensor<T>&,            \
                             head_saved<T>&);                                                     \
  template double head_loss(backend<T>&, extent, const token*, const float*, head_saved<T>&);     \
  template void head_backward(backend<T>&, extent, const weights<T>&, const tensor<T>&,           \
                              const head_saved<T>&, tensor<T>&, weights<T>&, memory&);

GPT2_STAGES(float)
GPT2_STAGES(double)
GPT2_STAGES(bf16)
GPT2_STAGES(fp16)

}  // namespace gpt2
