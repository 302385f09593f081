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

/// Buffers by number. Those in an arena are where the program put them; those of a user's storage
/// go back to it when they end, at the latest with this object.
class buffers {
 public:
  buffers(std::size_t count, void* arena, storage_ref storage)
      : pieces_(count), arena_(static_cast<char*>(arena)), storage_(storage) {}
  buffers(buffers&&) noexcept = default;
  buffers& operator=(buffers&& other) noexcept {
    end_all();
    pieces_ = std::move(other.pieces_);
    arena_ = other.arena_;
    storage_ = other.storage_;
    return *this;
  }
  ~buffers() { end_all(); }

  void* operator[](std::size_t i) const { return pieces_[i].data; }

  /// Null where there are no bytes.
  void* begin(std::size_t i, std::int64_t bytes, std::int64_t offset) {
    auto& p = pieces_[i];
    if (bytes == 0) return nullptr;
    p.data = storage_ ? storage_.take(bytes) : arena_ + offset;
    if (p.data == nullptr)
      throw memory_error("memfit::checkpointed: the storage has no " + std::to_string(bytes) +
                         " bytes");
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
  std::vector<piece> pieces_;
  char* arena_;
  storage_ref storage_;
};

}  // namespace memfit::checkpoint::detail
