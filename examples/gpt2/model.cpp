#include "model.hpp"

namespace gpt2 {

template <class T>
activations<T>::activations(const config& sizes, extent shape, memory& in)
    : head{sizes, shape, in} {
  for (index layer = 0; layer < sizes.layers; ++layer) blocks.emplace_back(sizes, shape, in);
  for (index stage = 0; stage <= sizes.layers; ++stage)
    hidden.emplace_back("hidden", std::vector<index>{shape.rows(), sizes.channels}, in);
}

template <class T>
index activations<T>::bytes() const {
  index sum = head.bytes();
  for (auto const& h : hidden) sum += h.bytes();
  for (auto const& b : blocks) sum += b.bytes();
  return sum;
}

template <class T>
void forward(backend<T>& on, const config& sizes, extent shape, const token* tokens,
             const weights<T>& w, activations<T>& act) {
  embedding_forward(on, shape, tokens, w, act.hidden[0]);
  for (std::size_t i = 0; i < w.blocks.size(); ++i)
    block_forward(on, sizes, shape, w.blocks[i], act.hidden[i], act.hidden[i + 1], act.blocks[i]);
  head_forward(on, shape, w, act.hidden.back(), act.head);
}

template <class T>
double loss(backend<T>& on, extent shape, const token* targets, activations<T>& act) {
  return head_loss(on, shape, targets, act.head);
}

template <class T>
void backward(backend<T>& on, const config& sizes, extent shape, const token* tokens,
              const weights<T>& w, const activations<T>& act, weights<T>& gradients,
              workspace<T>& space) {
  head_backward(on, shape, w, act.hidden.back(), act.head, space.gradient, gradients, space);
  for (std::size_t i = w.blocks.size(); i-- > 0;)
    block_backward(on, sizes, shape, w.blocks[i], act.hidden[i], act.blocks[i], space.gradient,
                   gradients.blocks[i], space);
  embedding_backward(on, shape, tokens, space.gradient, gradients);
}

#define GPT2_MODEL(T)                                                                         \
  template struct activations<T>;                                                             \
  template void forward(backend<T>&, const config&, extent, const token*, const weights<T>&,  \
                        activations<T>&);                                                     \
  template double loss(backend<T>&, extent, const token*, activations<T>&);                   \
  template void backward(backend<T>&, const config&, extent, const token*, const weights<T>&, \
                         const activations<T>&, weights<T>&, workspace<T>&);

GPT2_MODEL(float)
GPT2_MODEL(double)

}  // namespace gpt2
