// Reads tensor files in the safetensors format, of whatever origin, and believes nothing they say.
// Used to load states, and by whoever wants tensors out of such a file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memfit/core/check.hpp"
#include "memfit/core/tensor.hpp"
#include "memfit/state_file/descriptor.hpp"
#include "memfit/state_file/stored.hpp"
#include "memfit/state_file/text.hpp"

namespace memfit {

/// A file of named tensors in the safetensors format, of any size up to 2^63 bytes.
///
/// Opening it reads the header alone and checks all of it: that it is strict JSON in UTF-8 of at
/// most 100,000,000 bytes, that no name comes twice, that every type is known, every shape's bytes
/// are those of its place, and that the tensors fill the file from the end of the header to the
/// last byte, without gap or overlap. Tensors are then read one by one, from any place, into memory
/// of any alignment. All members throw file_error, which names the file, the tensor and the
/// numbers; then nothing that was to be filled can be relied on. Movable, not copyable.
class tensor_file {
 public:
  explicit tensor_file(std::string path) : path_(std::move(path)) {
    open();
    parse(header());
    check_places();
  }

  std::string const& path() const { return path_; }
  /// All tensors, by name. Not of a temporary, over whose tensors one might loop.
  std::vector<stored_tensor> const& tensors() const& { return tensors_; }
  std::vector<stored_tensor> const& tensors() const&& = delete;
  /// What is written beside them, by key.
  stored_words const& words() const& { return words_; }
  stored_words const& words() const&& = delete;

  /// The tensor of this name, or null.
  stored_tensor const* find(std::string_view name) const {
    std::size_t i = 0;
    return detail::find_sorted(tensors_, name, name_of_tensor, i) ? &tensors_[i] : nullptr;
  }
  /// What is written under this key, or null.
  std::string const* word(std::string_view key) const {
    std::size_t i = 0;
    return detail::find_sorted(words_, key, key_of_word, i) ? &words_[i].second : nullptr;
  }
  /// The same, where it has to be there.
  stored_tensor const& at(std::string_view name) const {
    if (auto const* t = find(name)) return *t;
    refuse(name, "it is not in the file");
  }
  std::string const& word_at(std::string_view key) const {
    if (auto const* w = word(key)) return *w;
    refuse(detail::shown(key) + " is not in its __metadata__");
  }
  /// A word that is a number of type N, as text_of_number writes it.
  template <class N>
  N number_at(std::string_view key) const {
    N value{};
    auto const& text = word_at(key);
    if (!detail::parse_number(text, value))
      refuse(std::string(key) + " is " + detail::shown(text) + ", expected a number");
    return value;
  }
  /// Where it has to be this: the tensor of this name, with this type and shape; the word.
  stored_tensor const& expect(stored_tensor const& expected) const {
    auto const& found = at(expected.name);
    if (found.type != expected.type || found.shape != expected.shape)
      refuse(expected.name, "it is " + detail::text_of(found.type, found.shape) +
                                " in the file, expected " +
                                detail::text_of(expected.type, expected.shape));
    return found;
  }
  void expect(std::string_view key, std::string_view expected) const {
    auto const& found = word_at(key);
    if (found != expected)
      refuse(std::string(key) + " is " + detail::shown(found) + " in the file, expected " +
             detail::shown(expected));
  }

  /// Reads `bytes` bytes of a tensor of this file from its byte `first` on.
  void read(stored_tensor const& t, std::int64_t first, void* to, std::int64_t bytes) const {
    if (first < 0 || bytes < 0 || first > t.bytes() || bytes > t.bytes() - first)
      refuse(t.name, "bytes " + std::to_string(first) + " to " + std::to_string(first) + " + " +
                         std::to_string(bytes) + " of " + std::to_string(t.bytes()));
    if (file_.read(data_ + t.begin + first, to, bytes)) return;
    if (errno != 0) detail::fail_with_errno(where() + ": " + detail::called(t.name), "read");
    refuse(t.name, "the file has become shorter since it was opened");
  }

  /// Reads a whole tensor into one of the host's of the same count and element type.
  template <tensor T>
  void read(std::string_view name, T&& into) const {
    auto const r = ref(into);
    using element = typename decltype(ref(into))::element;
    auto const& t = at(name);
    if (t.type != stored_as<element> || t.count() != r.count)
      refuse(name, "it is " + detail::text_of(t.type, t.shape) + " in the file, and " +
                       std::to_string(r.count) + " elements of " + text_of(stored_as<element>) +
                       " are to be read");
    read(t, 0, r.data, t.bytes());
  }

  /// Refuses a tensor, or what the file holds, in the words of every refusal.
  [[noreturn]] void refuse(std::string_view name, std::string const& why) const {
    throw file_error(where() + ": tensor " + detail::shown(name) + ": " + why);
  }
  [[noreturn]] void refuse(std::string const& why) const { throw file_error(where() + ": " + why); }

 private:
  static std::string_view name_of_tensor(stored_tensor const& t) { return t.name; }
  static std::string_view key_of_word(stored_words::value_type const& w) { return w.first; }
  std::string where() const { return "memfit::tensor_file: '" + path_ + "'"; }

  void open() {
    file_ = detail::descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat about {};
    if (!file_.is_open() || !file_.look(about)) detail::fail_with_errno(where(), "open");
    if (!S_ISREG(about.st_mode)) refuse("it is no regular file");
    size_ = about.st_size;
  }

  std::string header() {
    constexpr std::uint64_t most = 100'000'000;
    unsigned char bytes[8] = {};
    if (size_ < 8) refuse(std::to_string(size_) + " bytes are too few for a tensor file");
    read_header(0, bytes, 8);
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | bytes[i];
    if (length > most || length > static_cast<std::uint64_t>(size_ - 8))
      refuse("a header of " + std::to_string(length) + " bytes in a file of " +
             std::to_string(size_) + "; at most " + std::to_string(most) + " are read");
    std::string text(static_cast<std::size_t>(length), '\0');
    data_ = 8 + static_cast<std::int64_t>(length);
    read_header(8, text.data(), data_ - 8);
    return text;
  }
  void read_header(std::int64_t place, void* to, std::int64_t bytes) const {
    if (file_.read(place, to, bytes)) return;
    if (errno != 0) detail::fail_with_errno(where(), "read");
    refuse("the file has become shorter since it was opened");
  }

  void parse(std::string const& text) {
    auto const place = where();
    detail::json_scanner json(text, place);
    if (text.empty() || text[0] != '{') json.fail("expected '{'");
    bool any_words = false;
    json.object([&](std::string const& name) {
      if (name != "__metadata__") {
        tensors_.push_back(parse_tensor(json, name));
      } else {
        if (std::exchange(any_words, true)) json.fail("__metadata__ comes twice");
        json.object([&](std::string const& key) { words_.emplace_back(key, json.string()); });
      }
    });
    json.expect_end();
    sort(tensors_, name_of_tensor, "tensor");
    sort(words_, key_of_word, "key of __metadata__");
  }

  template <class List, class KeyOf>
  void sort(List& list, KeyOf const& key_of, char const* what) const {
    std::sort(list.begin(), list.end(),
              [&](auto const& a, auto const& b) { return key_of(a) < key_of(b); });
    for (std::size_t i = 1; i < list.size(); ++i)
      if (key_of(list[i - 1]) == key_of(list[i]))
        refuse(std::string(what) + " " + detail::shown(key_of(list[i])) + " comes twice");
  }

  stored_tensor parse_tensor(detail::json_scanner& json, std::string const& name) const {
    stored_tensor t{name};
    std::vector<std::int64_t> offsets;
    bool seen[3] = {};
    json.object([&](std::string const& key) {
      constexpr std::string_view keys[] = {"dtype", "shape", "data_offsets"};
      auto const which = static_cast<std::size_t>(std::find(keys, keys + 3, key) - keys);
      if (which == 3) refuse(name, "unknown key " + detail::shown(key));
      if (std::exchange(seen[which], true)) refuse(name, key + " comes twice");
      if (which == 0)
        t.type = parse_type(name, json.string());
      else
        json.array([&, &list = which == 1 ? t.shape : offsets] { list.push_back(json.integer()); });
    });
    if (!seen[0] || !seen[1] || !seen[2]) refuse(name, "dtype, shape or data_offsets is missing");
    if (offsets.size() != 2)
      refuse(name, std::to_string(offsets.size()) + " data_offsets, expected 2");
    t.begin = offsets[0];
    t.end = offsets[1];
    return t;
  }
  stored_type parse_type(std::string_view name, std::string const& text) const {
    int i = 0;
    for (auto const& row : detail::stored_types) {
      if (text == row.name) return static_cast<stored_type>(i);
      ++i;
    }
    refuse(name, "unknown dtype " + detail::shown(text));
  }

  void check_places() const {
    std::vector<stored_tensor const*> order;
    for (auto const& t : tensors_) order.push_back(&t);
    std::sort(order.begin(), order.end(), [](auto const* a, auto const* b) {
      return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
    });
    std::int64_t const all = size_ - data_;
    std::int64_t filled = 0;
    for (auto const* t : order) {
      std::int64_t bytes = 0;
      auto const place = std::to_string(t->begin) + " to " + std::to_string(t->end);
      auto const what = detail::text_of(t->type, t->shape);
      if (!detail::bytes_of_shape(t->type, t->shape, bytes))
        refuse(t->name, what + " exceeds 2^63 bytes");
      if (t->end < t->begin || t->end > all)
        refuse(t->name, "bytes " + place + " of " + std::to_string(all) + " bytes of data");
      if (bytes != t->bytes()) {
        auto words = what;
        words.append(" takes ").append(std::to_string(bytes)).append(" bytes and lies at ");
        refuse(t->name, words.append(place));
      }
      if (t->begin != filled)
        refuse(t->name, std::string(t->begin < filled ? "overlaps another tensor" : "a gap") +
                            " at byte " + std::to_string(t->begin < filled ? t->begin : filled) +
                            " of the data, expected to begin at " + std::to_string(filled));
      filled = t->end;
    }
    if (filled != all)
      refuse("the tensors end at byte " + std::to_string(filled) + " of " + std::to_string(all) +
             " bytes of data");
  }

  std::string path_;
  detail::descriptor file_;
  std::int64_t size_ = 0, data_ = 0;  // of the file; where its data starts
  std::vector<stored_tensor> tensors_;
  stored_words words_;
};

}  // namespace memfit
