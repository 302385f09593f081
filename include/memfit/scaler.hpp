// The loss scale of training with fp16 gradients: grows while all is finite, backs off where not.
// Used between the backward pass, which multiplies the loss by it, and the step, which divides.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "memfit/core/check.hpp"
#include "memfit/core/owner.hpp"
#include "memfit/core/scalar.hpp"
#include "memfit/exec/machine.hpp"

namespace memfit {

/// How a loss scale moves. The defaults are those of PyTorch's GradScaler.
struct loss_scaler_options {
  float initial = 65536;         ///< from least to most
  double growth = 2;             ///< factor, 1 or more, after `interval` clean windows in a row
  double backoff = 0.5;          ///< factor above 0, at most 1, where a gradient is not finite
  std::int32_t interval = 2000;  ///< clean windows, 1 or more
  /// The overflow that makes the scale back off, counted since it last grew: 1 is the first one, as
  /// PyTorch has it; more tolerate overflows before, as Megatron-LM does. Every overflow skips.
  std::int32_t hysteresis = 1;
  /// Bounds; growth and backoff stop there. Within these widest ones the scale and its inverse are
  /// normal numbers, also where subnormal ones are flushed to zero.
  float least = 0x1p-126f, most = 0x1p126f;

  /// A scale that never moves. Windows with gradients that are not finite are skipped all the same.
  static loss_scaler_options fixed(float scale) {
    loss_scaler_options o;
    o.initial = scale;
    o.growth = o.backoff = 1;
    return o;
  }
};

/// Everything that a loss scaler knows, to be saved; a plain struct.
struct loss_scaler_state {
  loss_scaler_options options;
  float scale = 0;
  std::int32_t clean = 0;      ///< clean windows since the scale last moved or was to
  std::int32_t tolerance = 0;  ///< overflows until it backs off
  std::int64_t skipped = 0;    ///< windows in which some gradient was not finite
};

namespace detail {

/// The scale on the device.
struct scale_numbers {
  float scale, inverse;
  std::int32_t clean, tolerance;
  std::int64_t skipped;

  MEMFIT_HD void set(double value) {
    scale = static_cast<float>(value);
    inverse = static_cast<float>(1.0 / static_cast<double>(scale));
  }
};

/// Writes a gate that unscales gradients: those of a norm, or those that a flag tells of.
struct unscale_program {
  scale_numbers const* scale;
  gate_numbers* out;
  double const* norm;  // null: `nonfinite` tells
  std::uint32_t const* nonfinite;
  gate before;

  MEMFIT_HD void operator()() const {
    bool const bad = norm != nullptr ? !is_finite(*norm) : *nonfinite != 0;
    out->multiplier =
        product(scale->inverse, before.multiplier != nullptr ? *before.multiplier : 1.0f);
    out->skip =
        (before.skip != nullptr ? *before.skip : 0u) | (bad ? skip_nonfinite : std::uint32_t{0});
  }
};

/// Moves the scale by what the gates of a window say.
struct update_program {
  scale_numbers* now;
  gate_numbers const* gates;
  std::int32_t count;
  std::uint32_t const* skip;  // of one gate more, or null
  loss_scaler_options options;

  MEMFIT_HD void operator()() const {
    bool bad = skip != nullptr && (*skip & skip_nonfinite) != 0;
    for (std::int32_t i = 0; i < count; ++i) bad |= (gates[i].skip & skip_nonfinite) != 0;
    if (bad)
      overflow();
    else if (++now->clean >= options.interval)
      grow();
  }

 private:
  MEMFIT_HD void overflow() const {
    ++now->skipped;
    now->clean = 0;
    if (now->tolerance > 1) {
      --now->tolerance;
      return;
    }
    now->tolerance = 0;
    double const less = static_cast<double>(now->scale) * options.backoff;
    double const least = static_cast<double>(options.least);
    now->set(less < least ? least : less);
  }
  MEMFIT_HD void grow() const {
    now->clean = 0;
    now->tolerance = options.hysteresis;
    double const more = static_cast<double>(now->scale) * options.growth;
    double const most = static_cast<double>(options.most);
    now->set(more > most ? most : more);
  }
};

/// Why options are refused, or null.
inline char const* invalid(loss_scaler_options const& o) {
  loss_scaler_options const widest;
  if (!(o.least >= widest.least && o.least <= o.most)) return "least";
  if (!(o.most <= widest.most)) return "most";
  if (!(o.initial >= o.least && o.initial <= o.most)) return "initial";
  if (!(o.growth >= 1) || !is_finite(o.growth)) return "growth";
  if (!(o.backoff > 0 && o.backoff <= 1)) return "backoff";
  if (o.interval < 1) return "interval";
  if (o.hysteresis < 1) return "hysteresis";
  return nullptr;
}

/// Why a saved state is refused, or null.
inline char const* invalid(loss_scaler_state const& s) {
  if (char const* const bad = invalid(s.options)) return bad;
  if (!(s.scale >= s.options.least && s.scale <= s.options.most)) return "scale";
  if (s.clean < 0) return "clean";
  if (s.tolerance < 0 || s.tolerance > s.options.hysteresis) return "tolerance";
  return s.skipped < 0 ? "skipped" : nullptr;
}

}  // namespace detail

/// A class of gradients summed over a window, as gradient_accumulator is: close() ends the window
/// and returns its gate, nonfinite() says where the flag lies that some sum is not finite.
template <class A>
concept accumulated = requires(A& a) {
  { a.close() } -> std::same_as<gate>;
  { a.nonfinite() } -> std::same_as<std::uint32_t const*>;
};

/// A loss scale with the behaviour of PyTorch's GradScaler, all of it on the executor's device.
///
/// A window is what lies between two updates: the backward pass multiplies the loss by *scale();
/// unscale gives a gate for the gradients of each optimizer; the optimizers step with their gates,
/// each of which skips where some of its own gradients is not finite; update moves the scale by
/// what all of them found. None of these waits for the device, and all can be captured in a graph.
/// The host keeps the order of calls and refuses a wrong one with order_error. It takes 536 bytes
/// of the executor's memory. Movable, not copyable; it and its gates' memory outlive the steps. Not
/// for use from several threads at once. All members throw before they change anything.
class loss_scaler {
 public:
  /// Gradients that can be unscaled in one window, each with a gate of its own.
  static constexpr int most_gates = 64;

  /// Throws hyperparameter_error. Waits for the executor.
  template <detail::executor_for<loss_scaler> E>
  explicit loss_scaler(E const& exec, loss_scaler_options const& options = {})
      : machine_(detail::new_machine<detail::unscale_program, detail::update_program>(exec)),
        ledger_(new ledger) {
    naming("loss_scaler", [&] { numbers_ = machine_->zeroed(bytes()); });
    load({options, options.initial, 0, options.hysteresis, 0});
  }

  /// Where the scale lies, in the executor's memory; the place never moves.
  float const* scale() const { return &numbers()->scale; }

  /// The gate for gradients of this norm, which is that of the scaled gradients and lies in the
  /// executor's memory, as global_norm gives it: multiplies by the inverse scale, and skips where
  /// the norm is not finite. Throws order_error for gradients already unscaled in this window.
  gate unscale(double const* norm) {
    if (norm == nullptr) throw argument_error("memfit::loss_scaler::unscale: null norm");
    return unscale(norm, [&](auto& program) { program.norm = norm; });
  }

  /// Closes an accumulator's window and gives its gate, the inverse scale in it.
  template <accumulated A>
  gate unscale(A& sums) {
    return unscale(sums.nonfinite(), [&](auto& program) {
      program.before = sums.close();
      program.nonfinite = sums.nonfinite();
    });
  }

  /// Ends the window: grows, keeps or backs off the scale by what all gates of it found, and `g`,
  /// which clipping may have made of one of them. Throws order_error where nothing was unscaled,
  /// where some gate was not stepped with, and for a gate of an earlier window.
  void update(gate const& g = {}) {
    detail::require_current("loss_scaler::update", g);
    auto& l = *ledger_;
    if (l.used == 0)
      throw order_error("memfit::loss_scaler::update: nothing was unscaled since the last update");
    for (int i = 0; i < l.used; ++i)
      if (!l.windows[i].stepped)
        throw order_error("memfit::loss_scaler::update: no step has used gate " +
                          std::to_string(i) + " of " + std::to_string(l.used));
    naming("loss_scaler::update", [&] {
      machine_->run(detail::update_program{numbers(), gates(), l.used, g.skip, state_options_});
    });
    for (auto& window : l.windows) window.number = 0;
    l.used = 0;
    ++l.number;
  }

  /// The scale, and the number of windows in which some gradient was not finite. Wait.
  float value_sync() const { return read("loss_scaler::value_sync").scale; }
  std::int64_t skipped_sync() const { return read("loss_scaler::skipped_sync").skipped; }

  /// Everything. Waits.
  loss_scaler_state state_sync() const {
    auto const n = read("loss_scaler::state_sync");
    return {state_options_, n.scale, n.clean, n.tolerance, n.skipped};
  }
  /// Goes on from a saved state. Throws hyperparameter_error for one that no scaler has, and
  /// order_error between unscale and update. Waits.
  void load(loss_scaler_state const& s) {
    if (char const* const bad = detail::invalid(s))
      throw hyperparameter_error("memfit::loss_scaler: " + std::string(bad) +
                                 " is out of range or not finite");
    if (ledger_->used != 0)
      throw order_error("memfit::loss_scaler::load: between unscale and update");
    detail::scale_numbers n{0, 0, s.clean, s.tolerance, s.skipped};
    n.set(static_cast<double>(s.scale));
    naming("loss_scaler::load", [&] { machine_->copy_from_host(numbers_.data(), &n, sizeof n); });
    state_options_ = s.options;
  }

 private:
  /// What the host knows of the window: whose gradients have gates.
  struct ledger {
    gate_window windows[most_gates];
    void const* sources[most_gates] = {};
    int used = 0;
    std::uint64_t number = 1;
  };

  static constexpr std::int64_t bytes() {
    return static_cast<std::int64_t>(sizeof(detail::scale_numbers)) +
           most_gates * static_cast<std::int64_t>(sizeof(detail::gate_numbers));
  }
  detail::scale_numbers* numbers() const {
    return static_cast<detail::scale_numbers*>(numbers_.data());
  }
  detail::gate_numbers* gates() const {
    return reinterpret_cast<detail::gate_numbers*>(numbers() + 1);
  }
  detail::scale_numbers read(char const* call) const {
    detail::scale_numbers n{};
    naming(call, [&] { machine_->copy_to_host(&n, numbers_.data(), sizeof n); });
    return n;
  }
  template <class Work>
  static void naming(char const* call, Work const& work) {
    detail::naming(call, "the loss scale", 1, 1, work);
  }

  template <class Complete>
  gate unscale(void const* source, Complete const& complete) {
    auto& l = *ledger_;
    for (int i = 0; i < l.used; ++i)
      if (l.sources[i] == source)
        throw order_error("memfit::loss_scaler::unscale: these gradients have gate " +
                          std::to_string(i) + " in this window already: update comes first");
    if (l.used == most_gates)
      throw argument_error("memfit::loss_scaler::unscale: more than " + std::to_string(most_gates) +
                           " gates in one window");
    auto* const out = gates() + l.used;
    detail::unscale_program program{numbers(), out, nullptr, nullptr, {}};
    complete(program);
    naming("loss_scaler::unscale", [&] { machine_->run(program); });
    l.sources[l.used] = source;
    auto& window = l.windows[l.used++];
    window = {l.number, false};
    gate g = program.before;
    g.multiplier = &out->multiplier;
    g.skip = &out->skip;
    g.window = &window;
    g.number = l.number;
    return g;
  }

  owner<detail::machine<detail::unscale_program, detail::update_program>> machine_;
  owner<ledger> ledger_;
  buffer numbers_;
  loss_scaler_options state_options_;
};

}  // namespace memfit
