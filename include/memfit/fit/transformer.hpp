// A transformer as the estimate sees it, from the usual numbers.
// Used by whoever asks whether a GPT-2, a BERT or a Llama fits.
#pragma once

#include <cmath>
#include <utility>

#include "memfit/fit/model.hpp"
#include "memfit/fit/transformer/activations.hpp"
#include "memfit/fit/transformer/known.hpp"
#include "memfit/fit/transformer/parameters.hpp"
#include "memfit/fit/transformer/shape.hpp"

namespace memfit::fit {

/// An embedding, blocks and a head. Tensors and counts are those of the published checkpoints.
///
/// The chain is that of a trainer which keeps the probabilities of attention, statistics of norms
/// and losses in 4 bytes at least, each tensor a multiple of checkpoint::alignment: for gpt2 what
/// gpt2_train allocates, to the byte (with dropout a forward's scratch has one tensor more); for
/// the others the same analysis. A block has three variants: keep everything; recompute norms and
/// the activation function; recompute the probabilities, too. The head of gpt2 and llama has logits
/// of all tokens, that of bert the first token of each window. Times are nanoseconds, from the
/// products' operations and the bytes that pass by, at the given rates.
///
/// workspace is inputs and targets, 4 bytes per token each. The model throws argument_error here
/// for numbers that make no transformer, and for a pass that is longer than the table of positions,
/// has more tensor-parallel ranks than heads, or is out of range.
inline model transformer(transformer_shape shape) {
  detail::require_shape(shape);
  model made{.name = shape.name, .stages = detail::parameters_of(shape), .chain = {}};
  made.workspace = [shape](pass const& p) {
    detail::require_pass(shape, p);
    return detail::product(shape, {2, p.batch, p.seq, 4});
  };
  made.chain = [shape = std::move(shape)](pass const& p, rates const& speed) {
    if (!(speed.flops > 0 && speed.bytes > 0 && std::isfinite(speed.flops + speed.bytes)))
      detail::refuse(shape, "rates are not finite numbers above 0");
    return detail::chain_of(shape, p, speed);
  };
  return made;
}

}  // namespace memfit::fit
