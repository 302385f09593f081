// Which names and which memory are taken: two sorted lists, cheaper to include than a map.
// Used by the optimizer, which refuses a tensor that is registered already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memfit/core/check.hpp"

namespace memfit::detail {

/// Tensors by name and by place; unnamed and empty ones are in neither list. A template, so that a
/// unit that makes no optimizer does not compile its lists.
template <class = void>
class occupied {
 public:
  static constexpr std::size_t none = SIZE_MAX;

  /// Number of the tensor of this name.
  std::size_t find(std::string_view name) const {
    auto const at = place_of(name);
    return at < names_.size() && names_[at].name == name ? names_[at].index : none;
  }

  /// Number of a tensor that this memory overlaps.
  std::size_t overlapping(extent const& where) const {
    if (where.empty()) return none;
    auto const after = first(extents_, [&](placed const& p) { return p.begin < where.end; });
    if (after == 0 || extents_[after - 1].end <= where.begin) return none;
    return extents_[after - 1].index;
  }

  void add(std::string_view name, extent const& where, std::size_t index) {
    if (!name.empty()) insert(names_, place_of(name), {std::string(name), index});
    if (where.empty()) return;
    auto const at = first(extents_, [&](placed const& p) { return p.begin < where.begin; });
    insert(extents_, at, {where.begin, where.end, index});
  }

 private:
  struct named {
    std::string name;
    std::size_t index;
  };
  struct placed {
    std::uintptr_t begin, end;
    std::size_t index;
  };

  std::size_t place_of(std::string_view name) const {
    return first(names_, [&](named const& n) { return n.name < name; });
  }
  /// The first item for which `before` does not hold.
  template <class Item, class Before>
  static std::size_t first(std::vector<Item> const& items, Before const& before) {
    std::size_t low = 0, high = items.size();
    while (low < high) {
      auto const middle = low + (high - low) / 2;
      if (before(items[middle]))
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  template <class Item>
  static void insert(std::vector<Item>& items, std::size_t at, Item item) {
    items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), std::move(item));
  }

  std::vector<named> names_;
  std::vector<placed> extents_;
};

}  // namespace memfit::detail
