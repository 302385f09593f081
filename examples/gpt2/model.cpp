#include "model.hpp"

#include <algorithm>

#include "counting_backend.hpp"

namespace gpt2 {

namespace checkpoint = memfit::checkpoint;

namespace {

block_choice choice_of(const checkpoint::context& context) {
  return context.saves() ? block_choices[static_cast<std::size_t>(context.variant)]
                         : block_choice{};
}

}  // namespace

template <class T>
void model<T>::set_batch(extent shape, float dropped_share) {
  shape_ = shape;
  dropped_share_ = dropped_share;
}

template <class T>
tensor<T> model<T>::hidden(const void* at) const {
  return {"hidden", extents().narrow(), on_.own_memory(), static_cast<T*>(const_cast<void*>(at))};
}

template <class T>
void model<T>::forward(index stage, const void* in, void* out, checkpoint::context& context) {
  dropout const drop{dropped_share_, context.noise};
  auto to = hidden(out);
  if (stage == 0 && !context.wants_output) return;
  if (stage == 0)
    return embedding_forward(on_, shape_, static_cast<const token*>(in), w_, drop, to);
  auto const from = hidden(in);
  stack_memory scratch{context.scratch, on_.own_memory()};
  stack_memory kept{context.saved, on_.own_memory()};
  if (stage == head()) return head_forward_in(context.saves() ? kept : scratch, from);
  block_saved<T> saved{extents(), choice_of(context), context.saves() ? kept : scratch};
  block_forward(on_, extents(), block_of(w_, stage), drop, from,
                context.wants_output ? &to : nullptr, saved, scratch);
}

template <class T>
void model<T>::head_forward_in(stack_memory& kept, const tensor<T>& in) {
  head_saved<T> saved{sizes_, shape_, kept};
  head_storage_ = kept.bottom();
  head_bytes_ = kept.taken();
  head_forward(on_, shape_, w_, in, saved);
}

template <class T>
void model<T>::set_after_backward(std::function<void(index)> call) {
  after_backward_ = std::move(call);
}

template <class T>
void model<T>::backward(index stage, const void* in, const void* /*out*/, void* d_out, void* d_in,
                        checkpoint::context& context) {
  differentiate(stage, in, d_out, d_in, context);
  if (after_backward_) after_backward_(stage);
}

template <class T>
void model<T>::differentiate(index stage, const void* in, void* d_out, void* d_in,
                             checkpoint::context& context) {
  dropout const drop{dropped_share_, context.noise};
  auto d_to = hidden(d_out);
  if (stage == 0)
    return embedding_backward(on_, shape_, static_cast<const token*>(in), drop, d_to, d_w_);
  auto const from = hidden(in);
  auto d_from = hidden(d_in);
  stack_memory kept{context.saved, on_.own_memory()};
  stack_memory scratch{context.scratch, on_.own_memory()};
  if (stage == head()) {
    head_saved<T> const saved{sizes_, shape_, kept};
    return head_backward(on_, shape_, w_, from, saved, d_from, d_w_, scratch);
  }
  block_saved<T> saved{extents(), choice_of(context), kept};
  block_backward(on_, extents(), block_of(w_, stage), drop, from, saved, d_to, d_from,
                 block_of(d_w_, stage), scratch);
}

template <class T>
double model<T>::loss(const token* targets, const float* loss_scale) {
  checkpoint::carver storage{head_storage_, head_bytes_, "saved", head()};
  stack_memory kept{storage, on_.own_memory()};
  head_saved<T> saved{sizes_, shape_, kept};
  return head_loss(on_, shape_, targets, loss_scale, saved);
}

template <class T>
void model<T>::read_logits(index row, wide<T>* to) const {
  checkpoint::carver storage{head_storage_, head_bytes_, "saved", head()};
  stack_memory kept{storage, on_.own_memory()};
  head_saved<T> const saved{sizes_, shape_, kept};
  std::vector<T> stored(static_cast<std::size_t>(sizes_.vocabulary));
  saved.logits.read(row * sizes_.vocabulary, stored.data(), sizes_.vocabulary);
  std::transform(stored.begin(), stored.end(), to, [](T x) { return static_cast<wide<T>>(x); });
}

template <class T>
checkpoint::chain model<T>::chain() const {
  index const bytes = checkpoint::rounded(hidden(nullptr).bytes());
  checkpoint::stage const embedding{.output = bytes,
                                    .gradient = bytes,
                                    .forward = 1,
                                    .variants = {{.forward = 1, .backward = 1}}};
  checkpoint::stage of_block{.output = bytes, .gradient = bytes, .forward = 1, .variants = {}};
  of_block.scratch = count_pass();
  for (auto const keep : block_choices) of_block.variants.push_back(count_block(keep));
  checkpoint::chain stages{embedding};
  stages.insert(stages.end(), static_cast<std::size_t>(sizes_.layers), of_block);
  auto const of_head = count_head();
  stages.push_back({.forward = 1, .scratch = of_head.saved, .variants = {of_head}});
  return stages;
}

// What stages take: the calls of a training step, over no storage and on a backend that computes
// nothing.
template <class T>
index model<T>::count_pass() const {
  counting_backend<T> on;
  checkpoint::carver storage;
  stack_memory scratch{storage, host_memory()};
  auto activation = hidden(nullptr);
  block_saved<T> saved{extents(), {}, scratch};
  block_forward(on, extents(), block_of(w_, 1), {dropped_share_, {}}, activation, &activation,
                saved, scratch);
  return storage.bytes();
}

template <class T>
checkpoint::variant model<T>::count_block(block_choice keep) const {
  counting_backend<T> on;
  checkpoint::carver kept, in_forward, in_backward;
  stack_memory saves{kept, host_memory()};
  stack_memory forward_scratch{in_forward, host_memory()};
  stack_memory backward_scratch{in_backward, host_memory()};
  auto activation = hidden(nullptr);
  dropout const drop{dropped_share_, {}};
  block_saved<T> saved{extents(), keep, saves};
  block_forward(on, extents(), block_of(w_, 1), drop, activation, &activation, saved,
                forward_scratch);
  block_backward(on, extents(), block_of(w_, 1), drop, activation, saved, activation, activation,
                 block_of(d_w_, 1), backward_scratch);
  return {.saved = kept.bytes(),
          .forward = 1,
          .replay = 1,
          .backward = 1,
          .forward_scratch = in_forward.bytes(),
          .backward_scratch = in_backward.bytes()};
}

template <class T>
checkpoint::variant model<T>::count_head() const {
  counting_backend<T> on;
  checkpoint::carver kept, in_backward;
  stack_memory saves{kept, host_memory()};
  stack_memory scratch{in_backward, host_memory()};
  auto activation = hidden(nullptr);
  head_saved<T> const saved{sizes_, shape_, saves};
  head_backward(on, shape_, w_, activation, saved, activation, d_w_, scratch);
  return {.saved = kept.bytes(),
          .forward = 1,
          .replay = 1,
          .backward = 1,
          .backward_scratch = in_backward.bytes()};
}

template class model<float>;
template class model<double>;
template class model<bf16>;
template class model<fp16>;

}  // namespace gpt2
