// The buffers of a checkpointed pass while it runs: in an arena, or taken from a user's storage.
// Used by the runner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "memfit/checkpoint/run/storage.hpp"
#include "memfit/core/error.hpp"

namespace memfit::checkpoint::detail {

struct piece {
  void* data = nullptr;
  std::int64_t bytes = 0;
};

/// Buffers by number: activation i has number i. Those in an arena are where the program put them;
/// those of a user's storage go back to it when they end, at the latest with this object.
class buffers {
 public:
  buffers(std::size_t stages, void* arena, storage_ref storage)
      : pieces_(2 * stages + 3), arena_(static_cast<char*>(arena)), storage_(storage) {}
  buffers(buffers&&) noexcept = default;
  buffers& operator=(buffers&& other) noexcept {
    end_all();
    pieces_ = std::move(other.pieces_);
    arena_ = other.arena_;
    storage_ = other.storage_;
    return *this;
  }
  ~buffers() { end_all(); }

  std::size_t saved(std::size_t stage) const { return stages() + 1 + stage; }
  std::size_t scratch() const { return 2 * stages() + 1; }
  std::size_t gradients() const { return 2 * stages() + 2; }

  void* operator[](std::size_t i) const { return pieces_[i].data; }

  /// Null where there are no bytes. Throws memory_error where a user's storage gives none.
  void* begin(std::size_t i, std::int64_t bytes, std::int64_t offset) {
    auto& p = pieces_[i];
    if (bytes == 0) return nullptr;
    p.data = storage_ ? storage_.take(bytes) : arena_ + offset;
    if (p.data == nullptr)
      throw memory_error("memfit::checkpointed: " + name_of(i) + ": the storage gave no " +
                         std::to_string(bytes) + " bytes");
    p.bytes = bytes;
    return p.data;
  }
  void end(std::size_t i) noexcept {
    auto const p = std::exchange(pieces_[i], {});
    if (storage_ && p.data != nullptr) storage_.give(p.data, p.bytes);
  }
  void end_all() noexcept {
    for (std::size_t i = 0; i < pieces_.size(); ++i) end(i);
  }

 private:
  std::size_t stages() const { return (pieces_.size() - 3) / 2; }
  std::string name_of(std::size_t i) const {
    if (i == scratch()) return "scratch";
    if (i == gradients()) return "gradients";
    return i <= stages() ? "activation " + std::to_string(i)
                         : "stage " + std::to_string(i - saved(0)) + ": saved";
  }

  std::vector<piece> pieces_;
  char* arena_;
  storage_ref storage_;
};

}  // namespace memfit::checkpoint::detail
