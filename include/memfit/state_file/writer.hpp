// Writes tensor files in the safetensors format, beside the file that they are to replace.
// Used to save states, and by whoever wants tensors in such a file.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
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

/// Writes a file of named tensors in the safetensors format.
///
/// All tensors and words are named first; then come their bytes, in parts of any size, so that no
/// tensor need lie in memory as a whole; then commit. Until then everything goes to a file of
/// another name, PATH.tmp-PROCESS-NUMBER, which commit brings to the disk (fsync) and renames, and
/// which goes away with a writer that did not commit: whatever fails, PATH is the old file or the
/// new one. Data starts at a multiple of 8 and tensors of larger elements come first, so that each
/// is aligned. The same calls give the same bytes. All members throw file_error, or argument_error
/// where names or sizes cannot be. Not copyable.
class tensor_file_writer {
 public:
  /// `tensors`: name, type and shape; their places are found here.
  tensor_file_writer(std::string path, std::vector<stored_tensor> tensors,
                     stored_words const& words = {})
      : path_(std::move(path)), tensors_(std::move(tensors)), written_(tensors_.size()) {
    lay_out();
    auto const text = header(words);
    require_place();
    try {
      begin(text);
    } catch (...) {
      discard();
      throw;
    }
  }
  tensor_file_writer(tensor_file_writer const&) = delete;
  tensor_file_writer& operator=(tensor_file_writer const&) = delete;
  ~tensor_file_writer() { discard(); }

  /// As they were given, with their places.
  std::vector<stored_tensor> const& tensors() const { return tensors_; }

  /// The next bytes of tensor `index` of those given, in any order among tensors.
  void write(std::size_t index, void const* from, std::int64_t bytes) {
    if (index >= tensors_.size())
      throw argument_error(where() + ": tensor " + std::to_string(index) + " of " +
                           std::to_string(tensors_.size()));
    auto const& t = tensors_[index];
    auto& done = written_[index];
    if (bytes < 0 || bytes > t.bytes() - done)
      refuse(t.name, std::to_string(done) + " + " + std::to_string(bytes) + " bytes for " +
                         std::to_string(t.bytes()));
    if (!file_.write(data_ + t.begin + done, from, bytes))
      detail::fail_with_errno(where(), "write");
    done += bytes;
  }

  /// Puts the file in its place; nothing may follow. Throws argument_error where bytes of a tensor
  /// are missing.
  void commit() {
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      if (written_[i] != tensors_[i].bytes())
        refuse(tensors_[i].name, std::to_string(written_[i]) + " bytes written of " +
                                     std::to_string(tensors_[i].bytes()));
    auto const slash = path_.rfind('/');
    auto const folder = slash == std::string::npos ? std::string(".") : path_.substr(0, slash + 1);
    if (!file_.sync()) detail::fail_with_errno(where(), "fsync");
    if (!file_.close()) detail::fail_with_errno(where(), "close");
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
      detail::fail_with_errno(where(), "rename");
    temporary_.clear();
    sync(folder);
  }

 private:
  std::string where() const { return "memfit::tensor_file_writer: '" + path_ + "'"; }
  [[noreturn]] void refuse(std::string_view name, std::string const& why) const {
    throw argument_error(where() + ": tensor " + detail::shown(name) + ": " + why);
  }

  void lay_out() {
    std::vector<std::size_t> order(tensors_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
      return bytes_of(tensors_[a].type) > bytes_of(tensors_[b].type);
    });
    std::int64_t end = 0;
    for (auto const i : order) {
      auto& t = tensors_[i];
      std::int64_t bytes = 0;
      t.begin = end;
      if (!detail::bytes_of_shape(t.type, t.shape, bytes) ||
          __builtin_add_overflow(end, bytes, &end))
        refuse(t.name, detail::text_of(t.type, t.shape) + " exceeds 2^63 bytes");
      t.end = end;
    }
    require_names();
  }
  void require_names() const {
    std::vector<std::string_view> names;
    for (auto const& t : tensors_) {
      if (t.name == "__metadata__" || !detail::is_utf8(t.name))
        refuse(t.name, "the name is reserved or not UTF-8");
      names.push_back(t.name);
    }
    require_unlike(names, "tensor");
  }
  void require_unlike(std::vector<std::string_view>& names, char const* what) const {
    std::sort(names.begin(), names.end());
    auto const twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end())
      throw argument_error(where() + ": " + what + " " + detail::shown(*twice) + " comes twice");
  }

  std::string header(stored_words const& words) const {
    std::string text = "{";
    if (!words.empty()) text += "\"__metadata__\":" + text_of_words(words);
    for (auto const& t : tensors_) {
      if (text.size() > 1) text += ',';
      text += detail::quoted(t.name) + ":{\"dtype\":\"" + text_of(t.type) + "\",\"shape\":[";
      for (auto const extent : t.shape) {
        if (text.back() != '[') text += ',';
        text += std::to_string(extent);
      }
      text += "],\"data_offsets\":[" + std::to_string(t.begin) + "," + std::to_string(t.end) + "]}";
    }
    text += '}';
    text.append((8 - text.size() % 8) % 8, ' ');
    return text;
  }
  std::string text_of_words(stored_words const& words) const {
    std::string text = "{";
    std::vector<std::string_view> keys;
    for (auto const& [key, value] : words) {
      if (!detail::is_utf8(key) || !detail::is_utf8(value))
        throw argument_error(where() + ": " + detail::shown(key) + " of __metadata__ is not UTF-8");
      if (!keys.empty()) text += ',';
      text += detail::quoted(key) + ':' + detail::quoted(value);
      keys.push_back(key);
    }
    require_unlike(keys, "key of __metadata__");
    return text + '}';
  }

  /// What is there already must be a file, which renaming replaces.
  void require_place() const {
    struct stat about {};
    if (::stat(path_.c_str(), &about) == 0 && !S_ISREG(about.st_mode))
      throw file_error(where() + ": it is there, and no regular file");
  }

  void begin(std::string const& text) {
    static std::atomic<unsigned> count{0};
    do {
      temporary_ = path_ + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
      file_ = detail::descriptor(
          ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    } while (!file_.is_open() && errno == EEXIST);
    if (!file_.is_open()) {
      int const number = errno;
      temporary_.clear();
      errno = number;
      detail::fail_with_errno(where(), "create a file beside it");
    }
    unsigned char length[8];
    for (int i = 0; i < 8; ++i)
      length[i] = static_cast<unsigned char>(std::uint64_t{text.size()} >> (8 * i));
    data_ = 8 + static_cast<std::int64_t>(text.size());
    if (!file_.write(0, length, 8) || !file_.write(8, text.data(), data_ - 8))
      detail::fail_with_errno(where(), "write");
  }

  void discard() noexcept {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    temporary_.clear();
  }

  /// So that the new name survives a power failure, too.
  static void sync(std::string const& folder) {
    detail::descriptor const opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (opened.is_open()) opened.sync();
  }

  std::string path_, temporary_;
  std::vector<stored_tensor> tensors_;
  std::vector<std::int64_t> written_;  // bytes of each
  detail::descriptor file_;
  std::int64_t data_ = 0;
};

}  // namespace memfit
