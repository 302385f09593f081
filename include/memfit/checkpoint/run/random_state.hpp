// The state of a user's own random generator: saved before a forward, restored for its replay.
// Used by the runner; users specialise generator_traits for their generator.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "memfit/core/owner.hpp"

namespace memfit {

/// Shows a random generator's state to memfit, which can then repeat its numbers:
/// `static State get(G const&)` and `static void set(G&, State const&)`. State is any copyable type
/// with a default, such as the generator itself or the seed and offset of one on a device.
template <class G>
struct generator_traits;

/// A random generator that memfit can rewind: generator_traits is specialised for it.
template <class G>
concept rewindable = requires(G& g, G const& same) {
  generator_traits<G>::set(g, generator_traits<G>::get(same));
};

namespace checkpoint {

namespace detail {

/// Numbered states of one generator.
class random_states {
 public:
  random_states() = default;
  random_states(random_states const&) = delete;
  random_states& operator=(random_states const&) = delete;
  virtual ~random_states() = default;
  virtual void save(std::size_t slot) = 0;
  virtual void restore(std::size_t slot) = 0;
};

template <class G>
class states_of final : public random_states {
 public:
  states_of(G& generator, std::size_t count) : generator_(generator), states_(count) {}
  void save(std::size_t slot) override {
    states_[slot] = generator_traits<G>::get(std::as_const(generator_));
  }
  void restore(std::size_t slot) override {
    generator_traits<G>::set(generator_, std::as_const(states_[slot]));
  }

 private:
  using state = std::remove_cvref_t<decltype(generator_traits<G>::get(std::declval<G const&>()))>;
  G& generator_;
  std::vector<state> states_;
};

}  // namespace detail

/// Refers to a user's random generator, which must outlive it; or to none.
class generator_ref {
 public:
  generator_ref() = default;
  template <class G>
  requires(!std::same_as<std::remove_const_t<G>, generator_ref>) generator_ref(G& generator) {
    static_assert(rewindable<G>,
                  "memfit::checkpointed: a generator needs memfit::generator_traits<G> with "
                  "get(G const&) and set(G&, state)");
    if constexpr (rewindable<G>) {
      generator_ = &generator;
      make_ = [](void* g, std::size_t count) {
        return owner<detail::random_states>(new detail::states_of<G>(*static_cast<G*>(g), count));
      };
    }
  }

  explicit operator bool() const { return generator_ != nullptr; }
  /// Room for so many states of the generator.
  owner<detail::random_states> states(std::size_t count) const { return make_(generator_, count); }

 private:
  void* generator_ = nullptr;
  owner<detail::random_states> (*make_)(void*, std::size_t) = nullptr;
};

}  // namespace checkpoint

}  // namespace memfit
