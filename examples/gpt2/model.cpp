#include "model.hpp"

namespace gpt2 {

template <class T>
activations<T>::activations(const config& sizes, extent shape) : head{sizes, shape} {
  for (index layer = 0; layer < sizes.layers; ++layer) blocks.emplace_back(sizes, shape);
  for (index stage = 0; stage <= sizes.layers; ++stage)
    hidden.emplace_back("hidden", std::vector<index>{shape.rows(), sizes.channels});
}

template <class T>
index activations<T>::bytes() const {
  index sum = head.bytes();
  for (auto const& h : hidden) sum += h.bytes();
  for (auto const& b : blocks) sum += b.bytes();
  return sum;
}

template <class T>
void forward(context& ctx, const config& sizes, extent shape, const token* tokens,
             const weights<T>& w, activations<T>& act) {
  embedding_forward(ctx, shape, tokens, w, act.hidden[0]);
  for (std::size_t i = 0; i < w.blocks.size(); ++i)
    block_forward(ctx, sizes, shape, w.blocks[i], act.hidden[i], act.hidden[i + 1], act.blocks[i]);
  head_forward(ctx, shape, w, act.hidden.back(), act.head);
}

template <class T>
double loss(const context& ctx, extent shape, const token* targets, activations<T>& act) {
  return head_loss(ctx, shape, targets, act.head);
}

template <class T>
void backward(context& ctx, const config& sizes, extent shape, const token* tokens,
              const weights<T>& w, const activations<T>& act, weights<T>& gradients,
              workspace<T>& space) {
  head_backward(ctx, shape, w, act.hidden.back(), act.head, space.gradient, gradients, space);
  for (std::size_t i = w.blocks.size(); i-- > 0;)
    block_backward(ctx, sizes, shape, w.blocks[i], act.hidden[i], act.blocks[i], space.gradient,
                   gradients.blocks[i], space);
  embedding_backward(ctx, shape, tokens, space.gradient, gradients);
}

#define GPT2_MODEL(T)                                                                      \
  template struct activations<T>;                                                          \
  template void forward(context&, const config&, extent, const token*, const weights<T>&,  \
                        activations<T>&);                                                  \
  template double loss(const context&, extent, const token*, activations<T>&);             \
  template void backward(context&, const config&, extent, const token*, const weights<T>&, \
                         const activations<T>&, weights<T>&, workspace<T>&);

GPT2_MODEL(float)
GPT2_MODEL(double)

}  // namespace gpt2
