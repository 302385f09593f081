// How the numbers of one slot lie in a file: the words that name its format, and functions that
// check, decode and code them on the host, behind one face for all formats.
// Used by the part of an optimizer, and by the import of other programs' states.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "memfit/codec/companded.hpp"
#include "memfit/codec/dynamic.hpp"
#include "memfit/codec/float.hpp"
#include "memfit/codec/linear.hpp"
#include "memfit/codec/packed4.hpp"
#include "memfit/codec/root.hpp"
#include "memfit/codec/small_float.hpp"
#include "memfit/codec/storage.hpp"
#include "memfit/core/scalar.hpp"
#include "memfit/exec/block.hpp"
#include "memfit/names.hpp"
#include "memfit/state_file/part.hpp"

namespace memfit::detail {

/// What one codec makes of codes and numbers.
struct slot_coder {
  bool scaled;
  int width;         ///< bits of a code
  stored_type type;  ///< of the codes, as a file says it
  /// The place of the first code that no number has, or -1.
  std::int64_t (*first_bad)(void const* codes, std::int64_t n);
  /// The numbers of n codes, which begin a block.
  void (*decode)(void const* codes, float const* scales, int block, std::int64_t n, float* out);

  std::int64_t code_bytes(std::int64_t n) const { return (n * width + 7) / 8; }
};

template <class C>
std::uint32_t one_code(void const* codes, std::int64_t i) {
  return load_code<C>(static_cast<typename C::code const*>(codes), i);
}

/// Scalars are stored as what they are, codes as integers.
template <class C>
constexpr stored_type type_of_codes() {
  if (std::is_same_v<C, fp32_codec>) return stored_type::f32;
  if (std::is_same_v<C, bf16_codec>) return stored_type::bf16;
  if (std::is_same_v<C, fp16_codec>) return stored_type::f16;
  if (code_width<C>() <= 8) return stored_type::u8;
  return code_width<C>() == 16 ? stored_type::u16 : stored_type::u32;
}

template <class C, range R>
std::int64_t first_bad_code(void const* codes, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    float const x = C::decode(one_code<C>(codes, i));
    bool const in_range = C::scaled ? abs(x) <= 1.0f : is_finite(x);
    if (!in_range || (R == range::non_negative && x < 0)) return i;
  }
  return -1;
}
template <class C, range R>
void decode_codes(void const* codes, float const* scales, int block, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = moment_value<C, R>(one_code<C>(codes, i), C::scaled ? scales[i / block] : 1.0f);
}

template <class C, range R>
inline constexpr slot_coder coder_of{C::scaled, code_width<C>(), type_of_codes<C>(),
                                     &first_bad_code<C, R>, &decode_codes<C, R>};

/// Codes numbers anew as the optimizer stores them, to nearest.
template <class Storage>
void encode_slot(float const* x, std::int64_t n, void* codes, void* scales) {
  using C = typename Storage::codec;
  for (std::int64_t first = 0; first < n; first += Storage::block) {
    auto const end = first + Storage::block < n ? first + Storage::block : n;
    std::uint32_t most = 0;
    for (auto i = first; i < end; ++i) most = larger(most, bits(abs(x[i])));
    auto const scale = Storage::scale_for(most);
    Storage::store_scale(scales, first / Storage::block, scale);
    normalizer<float, true> const normalize(from_bits<float>(scale));
    for (auto i = first; i < end; ++i) {
      std::uint32_t const code =
          encode_moment<C, Storage::values>(C::scaled ? normalize(x[i]) : x[i], x[i] > 0.0f) &
          code_bits<C>;
      store_code<C>(static_cast<typename C::code*>(codes), i, code);
    }
  }
  if (Storage::width == 4 && n % 2 == 1)
    store_code<C>(static_cast<typename C::code*>(codes), n, C::zero);
}

/// The name, block size and type of scales of a slot's format.
struct slot_layout {
  std::string format;
  int block = 0;  ///< 0: there are no scales
  stored_type scales = stored_type::f32;

  bool operator==(slot_layout const&) const = default;
  std::string text() const {
    return block == 0 ? format
                      : format + ", block " + std::to_string(block) + ", scales " + text_of(scales);
  }
  static bool parse(std::string_view text, slot_layout& to) {
    to = {};
    constexpr std::string_view blocks = ", block ", kinds = ", scales ";
    auto const block = text.rfind(blocks), kind = text.rfind(kinds);
    to.format = text.substr(0, block);
    if (block == text.npos) return kind == text.npos;
    if (kind == text.npos || kind < block) return false;
    auto const begin = block + blocks.size();
    auto const scales = text.substr(kind + kinds.size());
    to.scales = scales == "BF16" ? stored_type::bf16 : stored_type::f32;
    return parse_number(text.substr(begin, kind - begin), to.block) && good_block_size(to.block) &&
           scales == text_of(to.scales);
  }
};

/// The format whose codes these are: a file need not know how moments are rounded to them.
template <class Format>
struct format_of_codes {
  using type = Format;
};
template <class Format, int Block>
struct format_of_codes<blocked<Format, Block>> : format_of_codes<Format> {};
template <class Format>
struct format_of_codes<stochastic<Format>> : format_of_codes<Format> {};

/// The name of a type, or the same word for all that have none.
template <class T>
std::string name_or_none() {
  if constexpr (named<T>)
    return name_of<T>::value();
  else
    return "unnamed";
}

/// A slot of an optimizer.
struct slot_face {
  range values;
  slot_layout layout;
  slot_coder const* coder;
  std::uint32_t limit;  ///< least magnitude, as a pattern, that it cannot hold
  void (*encode)(float const* x, std::int64_t n, void* codes, void* scales);
};

template <class Format, range R, scaling S>
slot_face face_of() {
  using storage = memfit::storage<Format, R, S>;
  using C = typename storage::codec;
  slot_layout layout{name_or_none<typename format_of_codes<Format>::type>(), 0,
                     stored_as<typename storage::scale>};
  if (storage::scaled) layout.block = storage::block;
  return {R, layout, &coder_of<C, R>, moment_limit<C>, &encode_slot<storage>};
}

/// What decodes a format of this name, or null for one that is not memfit's.
template <range R, class... Formats>
slot_coder const* coder_among(std::string_view name) {
  slot_coder const* found = nullptr;
  ((name == name_of<Formats>::value() ? void(found = &coder_of<codec_for<Formats, R>, R>) : void()),
   ...);
  return found;
}
template <range R>
slot_coder const* coder_named(std::string_view name) {
  return coder_among<R, fp32, bf16, fp16, float8, dynamic8, linear8, companded8, root8, packed4>(
      name);
}
inline slot_coder const* coder_named(std::string_view name, range values) {
  return values == range::any ? coder_named<range::any>(name)
                              : coder_named<range::non_negative>(name);
}

/// Reads a slot's codes and scales out of a file, a part of the tensor at a time, and refuses what
/// no slot holds.
class slot_source {
 public:
  /// Elements of a part; whole blocks of every size.
  static constexpr std::int64_t at_once = std::int64_t{1} << 16;

  slot_source(stored_tensor const& codes, stored_tensor const* scales, slot_coder const& coder,
              slot_layout const& layout, std::int64_t count)
      : codes_(&codes),
        scales_(scales),
        coder_(&coder),
        block_(layout.block),
        narrow_(layout.scales == stored_type::bf16),
        count_(count) {
    auto const n = count < at_once ? count : at_once;
    code_buffer_.resize(static_cast<std::size_t>((coder.code_bytes(n) + 3) / 4));
    if (coder.scaled) scale_buffer_.resize(static_cast<std::size_t>(block_count(n, block_)));
    if (narrow_) half_buffer_.resize(scale_buffer_.size());
    values_.resize(static_cast<std::size_t>(n));
  }

  /// Calls visit(first, n, values) for each part.
  template <class Visit>
  void for_each_part(tensor_file const& file, Visit const& visit) {
    for (std::int64_t first = 0; first < count_; first += at_once) {
      auto const n = count_ - first < at_once ? count_ - first : at_once;
      file.read(*codes_, coder_->code_bytes(first), code_buffer_.data(), coder_->code_bytes(n));
      if (auto const bad = coder_->first_bad(code_buffer_.data(), n); bad >= 0)
        file.refuse(codes_->name, "element " + std::to_string(first + bad) +
                                      " has a code that no finite number of its slot has");
      if (coder_->scaled) read_scales(file, first / block_, block_count(n, block_));
      coder_->decode(code_buffer_.data(), scale_buffer_.data(), block_, n, values_.data());
      visit(first, n, values_.data());
    }
  }

 private:
  void read_scales(tensor_file const& file, std::int64_t first, std::int64_t n) {
    auto* const to = scale_buffer_.data();
    if (narrow_) {
      file.read(*scales_, first * 2, half_buffer_.data(), n * 2);
      for (std::int64_t i = 0; i < n; ++i)
        to[i] = from_bits<float>(std::uint32_t{half_buffer_[static_cast<std::size_t>(i)]} << 16);
    } else {
      file.read(*scales_, first * 4, to, n * 4);
    }
    for (std::int64_t i = 0; i < n; ++i)
      if (!(to[i] >= 0.0f) || !is_finite(to[i]))
        file.refuse(scales_->name, "the scale of block " + std::to_string(first + i) +
                                       " is negative or not finite");
  }

  stored_tensor const* codes_;
  stored_tensor const* scales_;
  slot_coder const* coder_;
  int block_;
  bool narrow_;
  std::int64_t count_;
  std::vector<std::uint32_t> code_buffer_;
  std::vector<std::uint16_t> half_buffer_;
  std::vector<float> scale_buffer_, values_;
};

}  // namespace memfit::detail
