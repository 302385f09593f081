#include "weights.hpp"

#include <algorithm>
#include <cmath>

#include "random.hpp"

namespace gpt2 {

namespace {

template <class T>
norm_weights<T> make_norm(const std::string& name, index channels, memory& in) {
  return {{name + ".weight", {channels}, in}, {name + ".bias", {channels}, in}};
}

template <class T>
linear_weights<T> make_linear(const std::string& name, index inputs, index outputs, memory& in) {
  return {{name + ".weight", {inputs, outputs}, in}, {name + ".bias", {outputs}, in}};
}

template <class T>
block_weights<T> make_block(const std::string& name, index channels, memory& in) {
  return {make_norm<T>(name + ".ln_1", channels, in),
          make_linear<T>(name + ".attn.c_attn", channels, 3 * channels, in),
          make_linear<T>(name + ".attn.c_proj", channels, channels, in),
          make_norm<T>(name + ".ln_2", channels, in),
          make_linear<T>(name + ".mlp.c_fc", channels, 4 * channels, in),
          make_linear<T>(name + ".mlp.c_proj", 4 * channels, channels, in)};
}

// Draws on the host, in parts that are small beside any network.
template <class T, class Next>
void fill(tensor<T>& t, Next next) {
  std::vector<T> part(std::size_t{1} << 14);
  for (index done = 0; done < t.size(); done += std::ssize(part)) {
    index const count = std::min<index>(std::ssize(part), t.size() - done);
    std::generate_n(part.begin(), count, next);
    t.write(done, part.data(), count);
  }
}

template <class T>
void fill_normal(tensor<T>& t, double deviation, random_source& random) {
  fill(t, [&] { return T(static_cast<wide<T>>(deviation * random.normal())); });
}

template <class T>
void fill_ones(tensor<T>& t) {
  fill(t, [] { return T(1); });
}

}  // namespace

template <class T>
weights<T>::weights(const config& sizes, memory& in)
    : of_token{"wte", {sizes.vocabulary, sizes.channels}, in},
      of_position{"wpe", {sizes.context, sizes.channels}, in},
      norm{make_norm<T>("ln_f", sizes.channels, in)} {
  for (index layer = 0; layer < sizes.layers; ++layer)
    blocks.push_back(make_block<T>("h." + std::to_string(layer), sizes.channels, in));
}

template <class T>
std::vector<tensor<T>*> block_weights<T>::all() {
  return {&norm_1.gain,
          &norm_1.bias,
          &query_key_value.weight,
          &query_key_value.bias,
          &projection.weight,
          &projection.bias,
          &norm_2.gain,
          &norm_2.bias,
          &up.weight,
          &up.bias,
          &down.weight,
          &down.bias};
}

template <class T>
std::vector<tensor<T>*> weights<T>::all() {
  std::vector<tensor<T>*> list{&of_token, &of_position};
  for (auto& b : blocks) {
    auto const of_block = b.all();
    list.insert(list.end(), of_block.begin(), of_block.end());
  }
  list.insert(list.end(), {&norm.gain, &norm.bias});
  return list;
}

template <class T>
completed<T> completed_by(index stage, index layers, weights<T>& gradients) {
  if (stage == 0) return {0, {&gradients.of_token, &gradients.of_position}};
  auto of_block = block_of(gradients, std::min(stage, layers)).all();
  index const first = 2 + (stage - 1) * std::ssize(of_block);
  if (stage <= layers) return {first, std::move(of_block)};
  return {first, {&gradients.norm.gain, &gradients.norm.bias}};
}

template <class T>
index weights<T>::bytes() {
  index sum = 0;
  for (tensor<T> const* t : all()) sum += t->bytes();
  return sum;
}

template <class T>
void initialize(weights<T>& w, index seed) {
  constexpr double deviation = 0.02;
  double const residual = deviation / std::sqrt(2.0 * static_cast<double>(w.blocks.size()));
  random_source random{seed, 0};
  fill_normal(w.of_token, deviation, random);
  fill_normal(w.of_position, deviation, random);
  for (auto& b : w.blocks) {
    fill_ones(b.norm_1.gain);
    fill_normal(b.query_key_value.weight, deviation, random);
    fill_normal(b.projection.weight, residual, random);
    fill_ones(b.norm_2.gain);
    fill_normal(b.up.weight, deviation, random);
    fill_normal(b.down.weight, residual, random);
  }
  fill_ones(w.norm.gain);
}

template struct weights<float>;
template struct weights<double>;
template struct weights<bf16>;
template struct weights<fp16>;
template completed<float> completed_by(index, index, weights<float>&);
template completed<bf16> completed_by(index, index, weights<bf16>&);
template completed<fp16> completed_by(index, index, weights<fp16>&);
template void initialize(weights<float>&, index);
template void initialize(weights<double>&, index);
template void initialize(weights<bf16>&, index);
template void initialize(weights<fp16>&, index);

}  // namespace gpt2
