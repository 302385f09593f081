// States of bitsandbytes' 8-bit optimizers, from and to tensor files with its names and its maps.
// Used to go on in one of the two where the other stopped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memfit/codec/dynamic.hpp"
#include "memfit/state_file.hpp"

namespace memfit {

namespace detail {

/// Two states at most: state1 is slot 0, state2 slot 1.
class bitsandbytes_part_base : public state_part {
 public:
  explicit bitsandbytes_part_base(part_options options) : options_(std::move(options)) {}

  void list(std::vector<stored_tensor>& tensors, stored_words&) override {
    auto const all = columns();
    for (auto const& t : all.tensors) {
      int number = 1;
      for (auto const& s : t.slots) {
        auto const& layout = s.face.layout;
        if (layout != whole() && layout != mapped(layout.block))
          throw argument_error("memfit::save_state: tensor " + shown(t.name) + ": " + s.name +
                               " is " + shown(layout.text()) +
                               ", and bitsandbytes knows dynamic8 and fp32");
        tensors.push_back({name(t, "state", number), s.face.coder->type, {t.count}});
        if (s.face.coder->scaled) {
          tensors.push_back({name(t, "qmap", number), stored_type::f32, {byte_codes}});
          tensors.push_back(
              {name(t, "absmax", number), stored_type::f32, {block_count(t.count, layout.block)}});
        }
        ++number;
      }
      tensors.push_back({options_.prefix + t.name + ".step", stored_type::i64, {}});
    }
  }

  void write(tensor_file_writer& to, std::size_t first) override {
    auto const all = columns();
    column_mover mover(*all.of);
    for (auto const& t : all.tensors) {
      for (auto const& s : t.slots) {
        mover.write(to, first++, s.codes);
        if (!s.face.coder->scaled) continue;
        auto const map = map_of(*s.face.coder);
        to.write(first++, map.data(), std::ssize(map) * bytes_of(stored_type::f32));
        mover.write(to, first++, s.scales);
      }
      mover.write(to, first++, t.steps);
    }
  }

  void prepare(tensor_file const& from) override {
    auto const all = columns();
    taker_.emplace(*all.of);
    for (auto const& t : all.tensors) {
      int number = 1;
      for (auto const& s : t.slots) prepare_slot(from, t, s, number++);
      taker_->set(t.steps, steps_in(from, options_.prefix + t.name + ".step"));
    }
  }
  void take(tensor_file const& from) override { taker_->take(from); }

 protected:
  virtual optimizer_columns columns() const = 0;

 private:
  static slot_layout whole() { return {"fp32"}; }
  static slot_layout mapped(int block) { return {"dynamic8", block}; }
  std::string name(tensor_columns const& t, char const* what, int number) const {
    return options_.prefix + t.name + "." + what + std::to_string(number);
  }

  /// The numbers of all codes.
  static std::vector<float> map_of(slot_coder const& coder) {
    std::vector<std::uint8_t> codes;
    for (int code = 0; code < byte_codes; ++code) codes.push_back(static_cast<std::uint8_t>(code));
    std::vector<float> map(codes.size());
    float const one = 1;
    coder.decode(codes.data(), &one, byte_codes, byte_codes, map.data());
    return map;
  }

  void prepare_slot(tensor_file const& file, tensor_columns const& t, slot_columns const& s,
                    int number) {
    auto const& codes = file.at(name(t, "state", number));
    if (codes.count() != t.count)
      file.refuse(codes.name, "it is " + text_of(codes.type, codes.shape) +
                                  " in the file, expected " + std::to_string(t.count) +
                                  " elements");
    if (codes.type == stored_type::f32) return take_slot(file, codes, nullptr, whole(), t, s);
    if (codes.type != stored_type::u8)
      file.refuse(codes.name,
                  std::string("it is ") + text_of(codes.type) + " in the file, expected U8 or F32");
    auto const& scales = file.at(name(t, "absmax", number));
    require_map(file, name(t, "qmap", number), s.face.values);
    take_slot(file, codes, &scales, mapped(block_for(file, scales, s.face.layout.block, t.count)),
              t, s);
  }

  void take_slot(tensor_file const& file, stored_tensor const& codes, stored_tensor const* scales,
                 slot_layout const& found, tensor_columns const& t, slot_columns const& s) {
    auto const& own = s.face.layout;
    if (found != own && !options_.convert)
      file.refuse(codes.name,
                  "it is " + shown(found.text()) + " in the file, expected " + shown(own.text()));
    taker_->slot(file, codes, scales, *coder_named(found.format, s.face.values), found, s, t.count);
  }

  /// What so many scales are of: blocks of the slot's own size, or of one that bitsandbytes has
  /// had.
  static int block_for(tensor_file const& file, stored_tensor const& scales, int own,
                       std::int64_t count) {
    for (int const block : {own, default_block, 8 * default_block})
      if (block > 0 && scales.type == stored_type::f32 &&
          scales.count() == block_count(count, block))
        return block;
    file.refuse(scales.name, "it is " + text_of(scales.type, scales.shape) +
                                 ", which no block size makes of " + std::to_string(count) +
                                 " elements");
  }

  /// The map must be the dynamic one for such numbers, but for the last bits: bitsandbytes computes
  /// it on the machine that it runs on.
  static void require_map(tensor_file const& file, std::string const& name, range values) {
    std::vector<float> found(byte_codes);
    file.read(name, found);
    if (is_map(found, values)) return;
    auto const other = values == range::any ? range::non_negative : range::any;
    file.refuse(
        name, std::string(is_map(found, other) ? "it is the dynamic map of the other kind of number"
                                               : "it is not the dynamic map") +
                  ", expected the " + (values == range::any ? "signed" : "unsigned") +
                  " dynamic map");
  }
  static bool is_map(std::vector<float> const& found, range values) {
    auto const map = map_of(*coder_named("dynamic8", values));
    for (std::size_t i = 0; i < map.size(); ++i)
      if (!(abs(found[i] - map[i]) <= 0x1p-20f * abs(map[i]))) return false;
    return true;
  }

  /// An integer, or a float with the value of one.
  static std::int64_t steps_in(tensor_file const& file, std::string const& name) {
    auto const& t = file.at(name);
    std::int64_t steps = -1;
    if (t.count() == 1 && t.type == stored_type::i64) {
      file.read(t, 0, &steps, sizeof steps);
    } else if (t.count() == 1 && t.type == stored_type::f32) {
      float value = 0;
      file.read(t, 0, &value, sizeof value);
      if (value >= 0 && value <= 0x1p24f) steps = static_cast<std::int64_t>(value);
      if (static_cast<float>(steps) != value) steps = -1;
    }
    if (steps < 0)
      file.refuse(
          name, "it is " + text_of(t.type, t.shape) + ", expected a number of steps as I64 or F32");
    return steps;
  }

  part_options options_;
  std::optional<state_taker> taker_;  // once it is prepared
};

template <class Optimizer>
class bitsandbytes_part final : public bitsandbytes_part_base {
 public:
  bitsandbytes_part(Optimizer& of, part_options options)
      : bitsandbytes_part_base(std::move(options)), optimizer_(&of) {}

 protected:
  optimizer_columns columns() const override { return state_access::columns(*optimizer_); }

 private:
  Optimizer* optimizer_;
};

}  // namespace detail

/// The states of an optimizer as bitsandbytes (0.50) has them, to be given to save_state and
/// load_state in place of the optimizer.
///
/// A file holds, behind each parameter's name and a dot, state1 and state2 (U8 codes, or F32 where
/// they are not quantized), qmap1 and qmap2 (the dynamic maps), absmax1 and absmax2 (a scale per
/// block of 256, or of 2,048 in old files), and step: of an optimizer's state dict, the tensors of
/// each parameter. On the way back bitsandbytes' load_state_dict wants step as an int, and state1
/// and state2, which are flat here, in the parameter's shape (`.view_as(p)`). dynamic8 has the same
/// codes, so that moments of this format come and go bit for bit; other formats take them with
/// part_options::convert and are not exported. Maps that are not the dynamic one are refused, and
/// so is the signed map for a moment that is never negative, as bitsandbytes' RMSprop and Adagrad
/// have it. Hyper-parameters, seeds and what parameter columns keep are not part of it. For rules
/// with at most two slots.
template <rule Rule, format Format, class Param>
requires(slot_count<Rule> >= 1 && slot_count<Rule> <= 2)
    detail::bitsandbytes_part<optimizer<Rule, Format, Param>> bitsandbytes_states(
        optimizer<Rule, Format, Param>& of, part_options options = {}) {
  return {of, std::move(options)};
}

}  // namespace memfit
