// Files of states: what training needs to go on bit for bit, in the safetensors format.
// Used to save and resume a run; state_file/reader.hpp reads and state_file/writer.hpp writes any
// other tensors in that format.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "memfit/state_file/optimizer.hpp"
#include "memfit/state_file/part.hpp"
#include "memfit/state_file/window.hpp"

namespace memfit {

namespace detail {

/// A part, or what states() makes one of.
template <class T>
concept saved = std::derived_from<std::remove_cvref_t<T>, state_part> || requires(T& thing) {
  states(thing);
};

/// What states() makes of a thing; a part is one already.
template <class T>
decltype(auto) as_part(T& thing) {
  if constexpr (std::derived_from<T, state_part>)
    return (thing);
  else
    return states(thing);
}

/// Calls with(list of parts); what states() made lives until then.
template <class With, class... Parts>
void with_parts(With const& with, Parts&&... parts) {
  with(std::vector<state_part*>{&parts...});
}

}  // namespace detail

/// Writes parts to a file; see below.
inline void save_state(std::string path, std::vector<state_part*> const& parts) {
  std::vector<stored_tensor> tensors;
  stored_words words;
  std::vector<std::size_t> first;
  for (auto* const p : parts) {
    first.push_back(tensors.size());
    p->list(tensors, words);
  }
  tensor_file_writer to(std::move(path), std::move(tensors), words);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i]->write(to, first[i]);
  to.commit();
}

/// Takes parts out of a file; see below.
inline void load_state(tensor_file const& from, std::vector<state_part*> const& parts) {
  for (auto* const p : parts) p->prepare(from);
  for (auto* const p : parts) p->take(from);
}

/// Writes the states of `things` to a file: optimizers, loss scalers, accumulators, clippers, and
/// parts, which states(thing, options) makes of these and users of their own things.
///
/// A file of this name is replaced once the new one is whole and on the disk. Saved again after it
/// was loaded, a state gives the same bytes. Takes 1 MiB of the host's memory, whatever the size.
/// Throws file_error, argument_error where two things go by one name (prefixes tell them apart),
/// order_error within a window of gradients. Waits for the executors.
template <class... Things>
requires(sizeof...(Things) > 0 &&
         (detail::saved<Things> && ...)) void save_state(std::string path, Things&&... things) {
  detail::with_parts(
      [&](std::vector<state_part*> const& parts) { save_state(std::move(path), parts); },
      detail::as_part(things)...);
}

/// Takes the states of `things` out of such a file, so that what follows is bit for bit what would
/// have followed without: moments, counters, hyper-parameters, seeds and scales. The things are
/// made as they were when they were saved: rule, format and parameter column, and tensors of the
/// same names, counts and order. Parameters are the user's, and have their values already.
///
/// Everything is looked at before anything is changed: a file that is torn, truncated or hostile,
/// or of something else, is refused with file_error, which names both. What is stored stays of its
/// type, unless part_options::convert asks for another. Only an error of the disk or the device
/// after that leaves states in part. Waits for the executors.
template <class... Things>
requires(sizeof...(Things) > 0 &&
         (detail::saved<Things> && ...)) void load_state(tensor_file const& from,
                                                         Things&&... things) {
  detail::with_parts([&](std::vector<state_part*> const& parts) { load_state(from, parts); },
                     detail::as_part(things)...);
}
template <class... Things>
requires(sizeof...(Things) > 0 &&
         (detail::saved<Things> && ...)) void load_state(std::string path, Things&&... things) {
  load_state(tensor_file(std::move(path)), std::forward<Things>(things)...);
}

}  // namespace memfit
