#include "update.hpp"

#include <memfit/state_file/window.hpp>

namespace gpt2 {

namespace {

// Calls `with` for the sums, where there are some.
template <class Sums, class With>
void where_sums(Sums& sums, With with) {
  std::visit(
      [&](auto& of) {
        if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(of)>, std::monostate>) with(of);
      },
      sums);
}

}  // namespace

template <class T>
bool update<T>::add(index tokens) {
  if (!settings_.sums) return false;
  where_sums(sums_, [&](auto& sums) { sums.add(own_, tokens, memfit::after_add::zero); });
  return true;
}

template <class T>
void update<T>::begin(double lr, index tokens) {
  stepping_.set_lr(lr);
  release_->begin_folded(tokens, loss_scale());
}

template <class T>
void update<T>::begin_pass(index tokens) {
  release_->micro_batch(tokens);
}

template <class T>
void update<T>::complete(const completed<T>& stage) {
  gradients_in<T> gradients;
  for (tensor<T>* t : stage.gradients) gradients.push_back(memfit::ref(*t));
  release_->complete(static_cast<std::size_t>(stage.first), gradients);
}

template <class T>
memfit::gate update<T>::clipped(const double* norm, const memfit::gate& g) {
  if (settings_.clip_percentile) return clipper_->percentile(norm, g, *settings_.clip_percentile);
  constexpr double only_measure = std::numeric_limits<double>::infinity();
  return clipper_->limit(norm, g, settings_.clip_norm.value_or(only_measure));
}

template <class T>
void update<T>::step(double lr) {
  if (release_) return end_release();
  memfit::gate gate;
  gradient_list stepped = gradients_in<T>(own_.begin(), own_.end());
  if (!settings_.sums && measures()) {
    double const* const norm = (*norm_)(own_);
    gate = clipped(norm, scaler_ ? scaler_->unscale(norm) : memfit::gate{});
  }
  where_sums(sums_, [&](auto& sums) {
    gate = scaler_ ? scaler_->unscale(sums) : sums.close();
    if (measures()) gate = clipped(sums.norm(), gate);
    using element = typename std::remove_cvref_t<decltype(sums)>::element;
    stepped = gradients_in<element>(sums.begin(), sums.end());
  });
  stepping_.step(stepped, gate, lr);
  if (scaler_) scaler_->update(gate);
}

template <class T>
void update<T>::end_release() {
  if (scaler_)
    scaler_->update(release_->finish(*scaler_));
  else
    release_->finish();
}

template <class T>
void update<T>::tell(report& r) const {
  if (scaler_) {
    r.loss_scale = scaler_->value_sync();
    r.skipped = scaler_->skipped_sync();
  }
  if (clipper_) r.gradient_norm = clipper_->norm_sync();
  if (release_ && measures()) r.gradient_norm = release_->norm_sync();
}

template <class T>
void update<T>::add_states(state_parts& to) {
  auto const add = [&](auto& of) {
    using part = decltype(memfit::states(of));
    to.push_back(std::make_unique<part>(memfit::states(of)));
  };
  if (scaler_) add(*scaler_);
  if (clipper_) add(*clipper_);
  if (release_) add(*release_);
  where_sums(sums_, add);
}

template class update<float>;
template class update<bf16>;
template class update<fp16>;

}  // namespace gpt2
