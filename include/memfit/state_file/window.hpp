// The parts that what lies between backward passes and steps has of a file of states: loss scale,
// sums over micro-batches, norms of past steps and of released gradients.
// Used by save_state and load_state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "memfit/accumulator.hpp"
#include "memfit/clip.hpp"
#include "memfit/release.hpp"
#include "memfit/scaler.hpp"
#include "memfit/state_file/part.hpp"

namespace memfit {

namespace detail {

/// The part of a loss scaler: words alone.
class scaler_part final : public state_part {
 public:
  scaler_part(loss_scaler& of, part_options const& options) : of_(&of), prefix_(options.prefix) {}

  void list(std::vector<stored_tensor>&, stored_words& words) override {
    auto s = of_->state_sync();
    for_each(s, [&](char const* name, auto const& value) {
      words.emplace_back(key(name), text_of_number(value));
    });
  }
  void write(tensor_file_writer&, std::size_t) override {}
  void prepare(tensor_file const& from) override {
    for_each(state_, [&](char const* name, auto& value) {
      value = from.number_at<std::remove_reference_t<decltype(value)>>(key(name));
    });
    if (char const* const bad = invalid(state_))
      from.refuse(key(bad) + " is " + shown(*from.word(key(bad))) + ", out of range");
    of_->load(of_->state_sync());  // changes nothing, and refuses a window that is not over
  }
  void take(tensor_file const&) override { of_->load(state_); }

 private:
  std::string key(char const* name) const { return prefix_ + "scaler." + name; }
  template <class State, class Visit>
  static void for_each(State& s, Visit const& visit) {
    visit("initial", s.options.initial);
    visit("growth", s.options.growth);
    visit("backoff", s.options.backoff);
    visit("interval", s.options.interval);
    visit("hysteresis", s.options.hysteresis);
    visit("least", s.options.least);
    visit("most", s.options.most);
    visit("scale", s.scale);
    visit("clean", s.clean);
    visit("tolerance", s.tolerance);
    visit("skipped", s.skipped);
  }

  loss_scaler* of_;
  std::string prefix_;
  loss_scaler_state state_;
};

/// The part of a norm clipper: the last norm and past ones, the oldest first.
class clipper_part final : public state_part {
 public:
  clipper_part(norm_clipper& of, part_options const& options) : of_(&of), prefix_(options.prefix) {}

  void list(std::vector<stored_tensor>& tensors, stored_words&) override {
    norms_ = of_->norms_sync();
    tensors.push_back(column(std::ssize(norms_)));
  }
  void write(tensor_file_writer& to, std::size_t first) override {
    to.write(first, norms_.data(), std::ssize(norms_) * bytes_of(stored_type::f64));
  }
  void prepare(tensor_file const& from) override {
    auto const& found = from.at(name());
    if (found.type != stored_type::f64 || found.shape.size() != 1 || found.count() < 1 ||
        found.count() > norms_kept + 1)
      from.refuse(found.name, "it is " + text_of(found.type, found.shape) +
                                  " in the file, expected 1 to " + std::to_string(norms_kept + 1) +
                                  " norms of F64");
    norms_.resize(static_cast<std::size_t>(found.count()));
    from.read(found, 0, norms_.data(), found.bytes());
    for (std::size_t i = 1; i < norms_.size(); ++i)
      if (!(norms_[i] >= 0) || !is_finite(norms_[i]))
        from.refuse(found.name, "norm " + std::to_string(i) + " is negative or not finite");
  }
  void take(tensor_file const&) override { of_->load(norms_); }

 private:
  std::string name() const { return prefix_ + "clipper.norms"; }
  stored_tensor column(std::int64_t n) const { return {name(), stored_type::f64, {n}}; }

  norm_clipper* of_;
  std::string prefix_;
  std::vector<double> norms_;
};

/// The part of an accumulator between two windows: its additions, and the norms of its clipper.
template <class Param>
class accumulator_part final : public state_part {
 public:
  accumulator_part(gradient_accumulator<Param>& of, part_options const& options)
      : of_(&of), prefix_(options.prefix), clipper_(of.clipper(), {prefix_ + "accumulator."}) {}

  void list(std::vector<stored_tensor>& tensors, stored_words& words) override {
    tensors.push_back(column());
    clipper_.list(tensors, words);
  }
  void write(tensor_file_writer& to, std::size_t first) override {
    auto const additions = of_->additions_sync();
    to.write(first, &additions, sizeof additions);
    clipper_.write(to, first + 1);
  }
  void prepare(tensor_file const& from) override {
    of_->additions_sync();  // refuses a window that is not over
    from.read(from.expect(column()), 0, &additions_, sizeof additions_);
    if (additions_ < 0) from.refuse(column().name, std::to_string(additions_) + " additions");
    clipper_.prepare(from);
  }
  void take(tensor_file const& from) override {
    of_->load_additions(additions_);
    clipper_.take(from);
  }

 private:
  stored_tensor column() const { return {prefix_ + "accumulator.additions", stored_type::i64, {}}; }

  gradient_accumulator<Param>* of_;
  std::string prefix_;
  clipper_part clipper_;
  std::int64_t additions_ = 0;
};

/// The part of a gradient release between two windows: the norm that the next one is clipped by.
template <class Optimizer>
class release_part final : public state_part {
 public:
  release_part(gradient_release<Optimizer>& of, part_options const& options)
      : of_(&of), prefix_(options.prefix) {}

  void list(std::vector<stored_tensor>& tensors, stored_words&) override {
    of_->require_between("save_state");
    tensors.push_back(column());
  }
  void write(tensor_file_writer& to, std::size_t first) override {
    double const norm = of_->norm_sync();
    to.write(first, &norm, sizeof norm);
  }
  void prepare(tensor_file const& from) override {
    of_->require_between("load_state");
    from.read(from.expect(column()), 0, &norm_, sizeof norm_);
    if (!(norm_ >= 0) || !is_finite(norm_))
      from.refuse(column().name, "the norm is negative or not finite");
  }
  void take(tensor_file const&) override { of_->load(norm_); }

 private:
  stored_tensor column() const { return {prefix_ + "release.norm", stored_type::f64, {}}; }

  gradient_release<Optimizer>* of_;
  std::string prefix_;
  double norm_ = 0;
};

}  // namespace detail

/// A loss scaler as a part of a file: its options and all that it knows, as words.
inline detail::scaler_part states(loss_scaler& of, part_options const& options = {}) {
  return {of, options};
}

/// A norm clipper as a part of a file: the last norm and those of past steps.
inline detail::clipper_part states(norm_clipper& of, part_options const& options = {}) {
  return {of, options};
}

/// A gradient release as a part of a file, between two windows: the norm of the last one.
template <class Optimizer>
detail::release_part<Optimizer> states(gradient_release<Optimizer>& of,
                                       part_options const& options = {}) {
  return {of, options};
}

/// An accumulator as a part of a file, between two windows: what its noise depends on, and its
/// clipper. Its sums need not last.
template <class Param>
detail::accumulator_part<Param> states(gradient_accumulator<Param>& of,
                                       part_options const& options = {}) {
  return {of, options};
}

}  // namespace memfit
