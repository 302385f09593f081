// The global norm on the host.
// Used by host, in the order of exec/sum.hpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "memfit/exec/host/block.hpp"
#include "memfit/exec/sum.hpp"

namespace memfit::detail {

/// Joins the sums of a part; loops of fixed length, which compilers make lanes of.
template <int Reach = sums / 2>
double join(double (&sum)[sums]) {
  for (int i = 0; i < Reach; ++i) sum[i] += sum[i + Reach];
  if constexpr (Reach > 1) join<Reach / 2>(sum);
  return sum[0];
}

/// The sum of the squares of a part.
inline double sum_of_squares(float const (&x)[sum_part]) {
  double sum[sums];
  for (int k = 0; k < sums; ++k) {
    double const v = x[k];
    sum[k] = v * v;
  }
  for (int j = sums; j < sum_part; j += sums)
    for (int k = 0; k < sums; ++k) {
      double const v = x[j + k];
      sum[k] += v * v;
    }
  return join(sum);
}

/// The sum of the squares of one part of a tensor, as a body for run_on.
struct square_sum {
  void const* data;
  scalar_kind kind;
  std::int64_t first, last;
  double& out;

  template <class F>
  void operator()() const {
    alignas(64) float x[sum_part] = {};
    auto i = first;
    for (; i + ops<F>::width <= last; i += ops<F>::width)
      ops<F>::store(x + (i - first), load_scalars<F>(data, kind, i));
    for (; i < last; ++i) x[i - first] = load_scalars<float>(data, kind, i);
    out = sum_of_squares(x);
  }
};

/// The sum of the parts' sums; uses them up.
inline double sum_of(std::vector<double>& values) {
  while (values.size() > 1) {
    auto const n = static_cast<std::int64_t>(values.size());
    for (std::int64_t part = 0; part < sum_parts(n); ++part) {
      double sum[sums] = {};
      for (auto i = part * sum_part; i < n && i < (part + 1) * sum_part; ++i)
        sum[i % sums] += values[static_cast<std::size_t>(i)];
      values[static_cast<std::size_t>(part)] = join(sum);
    }
    values.resize(static_cast<std::size_t>(sum_parts(n)));
  }
  return values.empty() ? 0.0 : values[0];
}

}  // namespace memfit::detail
