// The memory of a run by category: what is in use, the most that was, and a limit to it.
// Used by all that allocates for a run; read by the log and by messages.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "memory.hpp"

namespace gpt2 {

enum class category {
  parameters,
  kept,  // beside parameters of 16 bits
  gradients,
  sums,  // of the gradients of micro-batches
  moments,
  scales,
  activations,
  workspace
};

inline constexpr std::array<std::string_view, 8> category_names{
    "parameters", "kept", "gradients", "sums", "moments", "scales", "activations", "workspace"};

class byte_counts {
 public:
  index& operator[](category of) { return bytes_[static_cast<std::size_t>(of)]; }
  index operator[](category of) const { return bytes_[static_cast<std::size_t>(of)]; }
  [[nodiscard]] index states() const {
    return (*this)[category::moments] + (*this)[category::scales];
  }
  [[nodiscard]] index total() const;
  // "parameters 3.1 GB, gradients 3.1 GB", without those that have none.
  [[nodiscard]] std::string text() const;

 private:
  std::array<index, category_names.size()> bytes_{};
};

// For one thread. Outlives what it counts.
class budget {
 public:
  explicit budget(std::optional<index> limit = std::nullopt) : limit_{limit} {}
  budget(const budget&) = delete;
  budget& operator=(const budget&) = delete;

  // Before so many bytes are taken. Throws user_error, and counts nothing, where they would pass
  // the limit.
  void take(category of, index bytes);
  void give_back(category of, index bytes) { in_use_[of] -= bytes; }

  [[nodiscard]] const byte_counts& in_use() const { return in_use_; }
  // Each at its own time.
  [[nodiscard]] const byte_counts& peak() const { return peak_; }
  // Of all together.
  [[nodiscard]] index peak_total() const { return peak_total_; }

 private:
  std::optional<index> limit_;
  byte_counts in_use_, peak_;
  index peak_total_ = 0;
};

// Counts memory that comes from elsewhere, for as long as it lives.
class reservation {
 public:
  reservation(budget& of, category in, index bytes) : budget_{of}, category_{in}, bytes_{bytes} {
    budget_.take(category_, bytes_);
  }
  ~reservation() { budget_.give_back(category_, bytes_); }
  reservation(const reservation&) = delete;
  reservation& operator=(const reservation&) = delete;

 private:
  budget& budget_;
  category category_;
  index bytes_;
};

}  // namespace gpt2
