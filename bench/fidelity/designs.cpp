#include <array>
#include <bit>
#include <random>

#include "contests.hpp"
#include "exact.hpp"

namespace memfit::bench {

namespace {

/// How a value between two neighbours is rounded: noise of this many steps is added before it goes
/// to the nearest. 1 makes the expectation exact.
enum class noise { none, half, full };

/// The magnitudes that codes stand for, ascending to 1.
struct levels {
  numbers values;
  noise dither = noise::none;
  /// Whether what is above zero never becomes zero.
  bool keeps_positive = false;
};

numbers steps_of_power(int count, double power) {
  numbers v;
  for (int i = 0; i <= count; ++i) v.push_back(std::pow(double(i) / count, power));
  return v;
}
/// 2 x / (1 + x) in equal steps.
numbers softsign() {
  numbers v;
  for (int i = 0; i <= 127; ++i) v.push_back(i / (254.0 - i));
  return v;
}
/// The dynamic map of arXiv 2110.02861, over so many decades.
numbers dynamic(bool is_signed, int decades) {
  numbers v{0, 1};
  for (int i = 0; i < decades; ++i) {
    int const parts = is_signed ? 1 << i : 2 << i;
    for (int k = 0; k < parts; ++k)
      v.push_back((0.1 + 0.9 * (k + 0.5) / parts) * std::pow(10, i - decades + 1));
  }
  std::sort(v.begin(), v.end());
  return v;
}
/// Floats of so many bits of exponent and mantissa, with subnormals, the largest 1.
numbers small_float(int exponent, int mantissa) {
  int const lowest = 2 - (1 << exponent), parts = 1 << mantissa;
  numbers v;
  for (int k = 0; k < parts; ++k) v.push_back(std::ldexp(k, lowest - mantissa));
  for (int p = lowest; p < 0; ++p)
    for (int k = 0; k < parts; ++k) v.push_back(std::ldexp(1 + double(k) / parts, p));
  v.push_back(1);
  return v;
}
/// Zero and levels of equal ratio.
numbers ratios(int count, double least) {
  numbers v{0};
  for (int i = 0; i < count; ++i) v.push_back(std::pow(least, 1 - double(i) / (count - 1)));
  return v;
}
numbers linear_without_zero(int count) {
  numbers v;
  for (int i = 1; i <= count; ++i) v.push_back(double(i) / count);
  return v;
}
numbers e2m1() {
  numbers v;
  for (int twelfths : {0, 1, 2, 3, 4, 6, 8, 12}) v.push_back(twelfths / 12.0);
  return v;
}

/// Both moments in blocks of one size, under fp32 scales or bf16 scales that are rounded up.
struct design {
  levels first, second;
  int block = 256;
  bool short_scales = false;
  int bits = 8;  // of a moment, on average

  double bytes() const { return (2.0 * bits + (short_scales ? 32.0 : 64.0) / block) / 8; }
};

class coded : public tensor_replay {
 public:
  coded(design d, std::int64_t count, double lr)
      : design_(std::move(d)),
        rule_(reference::of(plain_rule<adamw>(lr))),
        elements_(static_cast<std::size_t>(count)) {}

  void step(std::vector<float> const& gradient, std::int64_t step, numbers& update) override {
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      auto& e = elements_[i];
      e.p = 0;
      if (gradient[i] != 0 || e.s[0] != 0) rule_(e, double{gradient[i]}, step);
      update[i] = -e.p;
    }
    for (std::size_t at = 0; at < elements_.size(); at += static_cast<std::size_t>(design_.block)) {
      store(at, 0, design_.first);
      store(at, 1, design_.second);
    }
  }

 private:
  void store(std::size_t at, std::size_t slot, levels const& l) {
    auto const end = std::min(elements_.size(), at + static_cast<std::size_t>(design_.block));
    double most = 0;
    for (auto i = at; i < end; ++i) most = std::max(most, std::fabs(elements_[i].s[slot]));
    double const scale = scale_for(static_cast<float>(most));
    if (scale == 0) return;
    for (auto i = at; i < end; ++i) {
      double& x = elements_[i].s[slot];
      x = std::copysign(scale * value(std::fabs(x) / scale, l), x);
    }
  }
  double scale_for(float most) const {
    auto const bits = std::bit_cast<std::uint32_t>(most);
    return design_.short_scales ? std::bit_cast<float>((bits + 0xffffu) & 0xffff0000u) : most;
  }
  double value(double x, levels const& l) {
    auto const above = std::upper_bound(l.values.begin(), l.values.end(), x);
    if (above == l.values.end()) return l.values.back();
    if (above == l.values.begin()) return l.values.front();
    double const low = above[-1], high = above[0], place = (x - low) / (high - low);
    double const width = l.dither == noise::none ? 0 : l.dither == noise::half ? 0.5 : 1;
    double const chosen = place + width * (uniform_(random_) - 0.5) >= 0.5 ? high : low;
    return l.keeps_positive && x > 0 && chosen == 0 ? high : chosen;
  }

  design design_;
  reference::adam rule_;
  std::vector<reference::element<double>> elements_;
  std::mt19937_64 random_{7};
  std::uniform_real_distribution<double> uniform_{0, 1};
};

struct entry {
  char const* name;
  design (*make)();
};

levels kept(numbers v, noise n = noise::none) {
  return {std::move(v), n, true};
}
numbers roots() {
  return steps_of_power(127, 2);
}
numbers fourth_roots() {
  return steps_of_power(255, 4);
}
levels fifteen(double least) {
  return kept(ratios(15, least), noise::full);
}

constexpr entry entries[] = {
    {"dynamic, v may be 0, 256 (the 8-bit paper's map)",
     [] {
       return design{{dynamic(true, 7)}, {dynamic(false, 7)}};
     }},
    {"dynamic, v may be 0, 2048 (its block, too)",
     [] {
       return design{{dynamic(true, 7)}, {dynamic(false, 7)}, 2048};
     }},
    {"dynamic, 256",
     [] {
       return design{{dynamic(true, 7)}, kept(dynamic(false, 7))};
     }},
    {"dynamic, 128, bf16 scales",
     [] {
       return design{{dynamic(true, 7)}, kept(dynamic(false, 7)), 128, true};
     }},
    {"E4M3 / UE5M3, 256",
     [] {
       return design{{small_float(4, 3)}, kept(small_float(5, 3))};
     }},
    {"E4M3 / UE5M3, 2048",
     [] {
       return design{{small_float(4, 3)}, kept(small_float(5, 3)), 2048};
     }},
    {"E4M3 / UE5M3, 128, bf16 scales",
     [] {
       return design{{small_float(4, 3)}, kept(small_float(5, 3)), 128, true};
     }},
    {"E3M4 / UE4M4, 128, bf16 scales",
     [] {
       return design{{small_float(3, 4)}, kept(small_float(4, 4)), 128, true};
     }},
    {"E3M4 / UE4M4, 64",
     [] {
       return design{{small_float(3, 4)}, kept(small_float(4, 4)), 64};
     }},
    {"E2M5 / UE3M5, 128, bf16 scales",
     [] {
       return design{{small_float(2, 5)}, kept(small_float(3, 5)), 128, true};
     }},
    {"softsign / root, v may be 0, 32, bf16 scales (FlashOptim)",
     [] {
       return design{{softsign()}, {steps_of_power(255, 2)}, 32, true};
     }},
    {"softsign / root, 128, bf16 scales",
     [] {
       return design{{softsign()}, kept(steps_of_power(255, 2)), 128, true};
     }},
    {"root / root, 128, bf16 scales",
     [] {
       return design{{roots()}, kept(steps_of_power(255, 2)), 128, true};
     }},
    {"root / third root, 128, bf16 scales",
     [] {
       return design{{roots()}, kept(steps_of_power(255, 3)), 128, true};
     }},
    {"root / fourth root, 128, bf16 scales (root8)",
     [] {
       return design{{roots()}, kept(fourth_roots()), 128, true};
     }},
    {"root / fourth root, 256",
     [] {
       return design{{roots()}, kept(fourth_roots()), 256};
     }},
    {"root / fourth root, 2048",
     [] {
       return design{{roots()}, kept(fourth_roots()), 2048};
     }},
    {"root / fourth root, v at random, 128, bf16 scales",
     [] {
       return design{{roots()}, kept(fourth_roots(), noise::full), 128, true};
     }},
    {"root / fourth root, both at random, 128, bf16 scales",
     [] {
       return design{{roots(), noise::full}, kept(fourth_roots(), noise::full), 128, true};
     }},
    {"4 bits: dynamic / linear, 128 (arXiv 2309.01507)",
     [] {
       return design{{dynamic(true, 3)}, {linear_without_zero(16)}, 128, false, 4};
     }},
    {"4 bits: dynamic / ratios from 1e-5 at random, 64, bf16 scales",
     [] {
       return design{{dynamic(true, 3)}, fifteen(1e-5), 64, true, 4};
     }},
    {"4 bits: E2M1 / ratios from 1e-3 at random, 64, bf16 scales",
     [] {
       return design{{e2m1()}, fifteen(1e-3), 64, true, 4};
     }},
    {"4 bits: E2M1 / ratios from 1e-2 at random, 64, bf16 scales",
     [] {
       return design{{e2m1()}, fifteen(1e-2), 64, true, 4};
     }},
    {"4 bits: E2M1 half at random / the same",
     [] {
       return design{{e2m1(), noise::half}, fifteen(1e-2), 64, true, 4};
     }},
    {"4 bits: E2M1 at random / the same",
     [] {
       return design{{e2m1(), noise::full}, fifteen(1e-2), 64, true, 4};
     }},
    {"4 bits: E2M1 / v in 16 bits",
     [] {
       return design{{e2m1()}, kept(steps_of_power(65535, 4)), 64, true, 10};
     }},
};

template <std::size_t I>
std::unique_ptr<tensor_replay> make(std::int64_t count, double lr) {
  return std::make_unique<coded>(entries[I].make(), count, lr);
}

template <std::size_t... I>
contest list(std::index_sequence<I...>) {
  return {"adamw in double",
          make_exact<adamw>,
          {candidate{entries[I].name, entries[I].make().bytes(), make<I>}...}};
}

}  // namespace

contest contest_of_designs() {
  return list(std::make_index_sequence<std::size(entries)>());
}

}  // namespace memfit::bench
