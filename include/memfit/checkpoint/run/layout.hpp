// Places buffers whose lifetimes are known in one piece of memory.
// Used by the runner for its arena and for its copies in the second place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace memfit::checkpoint::detail {

/// A buffer that is alive from the beginning of action `born` to the end of action `dies`.
struct block {
  std::int64_t bytes = 0;
  std::int64_t born = 0, dies = 0;
  std::int64_t offset = 0;
};

/// The blocks' births and deaths in the order in which they happen.
class lifetimes {
 public:
  explicit lifetimes(std::vector<block> const& blocks) : blocks_(blocks), births_(indices()) {
    std::stable_sort(births_.begin(), births_.end(), [&](auto a, auto b) {
      auto const &x = blocks[a], &y = blocks[b];
      return x.born != y.born ? x.born < y.born : x.dies > y.dies;
    });
    std::vector<std::size_t> rank(blocks.size());
    for (std::size_t i = 0; i < births_.size(); ++i) rank[births_[i]] = i;
    deaths_ = births_;
    std::sort(deaths_.begin(), deaths_.end(), [&](auto a, auto b) {
      return blocks[a].dies != blocks[b].dies ? blocks[a].dies < blocks[b].dies : rank[a] > rank[b];
    });
  }

  template <class Birth, class Death>
  void replay(Birth const& birth, Death const& death) const {
    auto next = births_.begin();
    for (auto dying : deaths_) {
      for (; next != births_.end() && blocks_[*next].born <= blocks_[dying].dies; ++next)
        birth(*next);
      death(dying);
    }
  }

 private:
  std::vector<std::size_t> indices() const {
    std::vector<std::size_t> all(blocks_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }

  std::vector<block> const& blocks_;
  std::vector<std::size_t> births_, deaths_;
};

/// Gives every block one of two sides, such that some pairs are on opposite ones: union and find,
/// with the side relative to the parent.
class two_sides {
 public:
  explicit two_sides(std::size_t count) : parent_(count), flipped_(count, 0) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }

  /// False where the two were already bound to be on the same side.
  bool part(std::size_t a, std::size_t b) {
    bool const side_a = side(a), side_b = side(b);
    auto const root_a = parent_[a], root_b = parent_[b];
    if (root_a == root_b) return side_a != side_b;
    parent_[root_a] = root_b;
    flipped_[root_a] = side_a == side_b;
    return true;
  }

  /// Which side it is on; afterwards its parent is the root.
  bool side(std::size_t a) {
    auto root = a;
    bool from_root = false;
    for (; parent_[root] != root; root = parent_[root]) from_root ^= flipped_[root] != 0;
    bool const result = from_root;
    while (parent_[a] != root && a != root) {
      bool const step = flipped_[a] != 0;
      flipped_[a] = from_root;
      from_root ^= step;
      a = std::exchange(parent_[a], root);
    }
    return result;
  }

 private:
  std::vector<std::size_t> parent_;
  std::vector<unsigned char> flipped_;
};

/// Places blocks on two stacks that grow from the two ends: no byte is lost. Two blocks cannot be
/// on one stack where the earlier one dies first. Returns the bytes, or -1 where two stacks do not
/// do. Linear in the blocks and the pairs that part.
inline std::int64_t place_on_two_stacks(std::vector<block>& blocks, lifetimes const& lives) {
  two_sides sides(blocks.size());
  std::vector<std::size_t> alive;
  bool possible = true;
  lives.replay([&](std::size_t b) { alive.push_back(b); },
               [&](std::size_t b) {
                 auto i = alive.size();
                 while (alive[--i] != b) possible = sides.part(b, alive[i]) && possible;
                 alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(i));
               });
  if (!possible) return -1;
  std::int64_t used[2] = {}, total = 0;
  lives.replay(
      [&](std::size_t b) {
        auto& end = used[sides.side(b)];
        blocks[b].offset = end;
        end += blocks[b].bytes;
        total = (std::max)(total, used[0] + used[1]);
      },
      [&](std::size_t b) { used[sides.side(b)] -= blocks[b].bytes; });
  for (std::size_t b = 0; b < blocks.size(); ++b)
    if (sides.side(b)) blocks[b].offset = total - blocks[b].offset - blocks[b].bytes;
  return total;
}

/// Places every block into the first gap that holds it, for lifetimes that do not nest.
inline std::int64_t place_first_fit(std::vector<block>& blocks, lifetimes const& lives) {
  std::vector<std::size_t> alive;  // by offset
  std::int64_t total = 0;
  lives.replay(
      [&](std::size_t b) {
        std::int64_t gap = 0;
        auto at = alive.begin();
        for (; at != alive.end() && blocks[*at].offset - gap < blocks[b].bytes; ++at)
          gap = blocks[*at].offset + blocks[*at].bytes;
        blocks[b].offset = gap;
        total = (std::max)(total, gap + blocks[b].bytes);
        alive.insert(at, b);
      },
      [&](std::size_t b) { alive.erase(std::find(alive.begin(), alive.end(), b)); });
  return total;
}

/// Sets the offsets of all blocks and returns the bytes that they take together: as few as are
/// alive at a time wherever lifetimes nest or cross in two ways only.
inline std::int64_t place(std::vector<block>& blocks) {
  lifetimes const lives(blocks);
  auto const total = place_on_two_stacks(blocks, lives);
  return total >= 0 ? total : place_first_fit(blocks, lives);
}

}  // namespace memfit::checkpoint::detail
