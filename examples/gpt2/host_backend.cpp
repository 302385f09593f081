#include "host_backend.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "parallel.hpp"

namespace gpt2 {

namespace {

// Work below this many elements per thread is not worth waking another thread for.
constexpr index grain = 4096;

int threads_for(int threads, index elements) {
  return static_cast<int>(std::clamp<index>(elements / grain, 1, threads));
}

// e^x without a call, so that loops over it vectorize; relative error below 2e-7, result normal for
// every x.
inline float exponential(float x) {
  constexpr float log2_e = 1.44269504F;
  constexpr float ln2_high = 0.693359375F;
  constexpr float ln2_low = -2.12194440e-4F;
  x = x < -87.0F ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  constexpr float round_to_integer = 12582912.0F;
  float const power = (x * log2_e + round_to_integer) - round_to_integer;
  float const r = (x - power * ln2_high) - power * ln2_low;
  float sum = 1.9875691500e-4F;
  sum = sum * r + 1.3981999507e-3F;
  sum = sum * r + 8.3334519073e-3F;
  sum = sum * r + 4.1665795894e-2F;
  sum = sum * r + 1.6666665459e-1F;
  sum = sum * r + 5.0000001201e-1F;
  sum = sum * r * r + r + 1.0F;
  return sum * std::bit_cast<float>((static_cast<std::int32_t>(power) + 127) << 23);
}

inline double exponential(double x) {
  return std::exp(x);
}

// gelu(x) = x s, with s = 1 / (1 + e^(-2 u)) and u = sqrt(2 / pi) (x + 0.044715 x^3).
template <class T>
struct gelu_curve {
  static constexpr T slope = T(0.7978845608028654);
  static constexpr T cubic = T(0.044715);

  static T sigmoid(T x) {
    return T(1) / (T(1) + exponential(T(-2) * slope * (x + cubic * x * x * x)));
  }

  static T derivative(T x) {
    T const s = sigmoid(x);
    return s + x * s * (T(1) - s) * T(2) * slope * (T(1) + T(3) * cubic * x * x);
  }
};

// Adds rows, in their order, to `sum`.
template <class T, class RowAt>
void add_to(T* sum, index count, row_space<T> space, index rows, RowAt row_at) {
  wide<T>* const s = space.change(count, sum);
  for (index row = 0; row < rows; ++row) {
    row_space<T> of_row = space;
    wide<T> const* const x = of_row.read(count, row_at(row));
#pragma omp simd
    for (index c = 0; c < count; ++c) s[c] += x[c];
  }
  space.store(count, s, sum);
}

template <class F>
void normalize_row(index channels, F const* x, F const* gain, F const* bias, F mean, F reciprocal,
                   F* y) {
#pragma omp simd
  for (index c = 0; c < channels; ++c) y[c] = (x[c] - mean) * reciprocal * gain[c] + bias[c];
}

}  // namespace

// Rows are independent: any split gives the same bits.
template <class T>
template <class Body>
void host_backend<T>::each_row(index rows, index columns, Body body) {
  int const threads = threads_for(threads_, rows * columns);
  spaces_.reserve(threads, columns);
  parallel(threads, rows, [&](index begin, index end) {
    auto const space = spaces_.of(this_thread());
    for (index row = begin; row < end; ++row) body(row, space);
  });
}

// A sum over rows: each thread owns some columns and walks all rows in order, so again any split
// gives the same bits.
template <class T>
template <class Body>
void host_backend<T>::each_column_range(index rows, index columns, Body body) {
  int const threads = threads_for(threads_, rows * columns);
  spaces_.reserve(threads, columns);
  parallel(threads, columns,
           [&](index begin, index end) { body(begin, end - begin, spaces_.of(this_thread())); });
}

// Elements are independent; copies of a part stay in the first cache.
template <class T>
template <class Body>
void host_backend<T>::each_part(index count, Body body) {
  index const most = narrow<T> ? index{1024} : std::max<index>(count, 1);
  int const threads = threads_for(threads_, count);
  spaces_.reserve(threads, most);
  parallel(threads, count, [&](index begin, index end) {
    for (index first = begin; first < end; first += most)
      body(first, std::min(most, end - first), spaces_.of(this_thread()));
  });
}

template <class T>
void host_backend<T>::layer_norm(index rows, const tensor<T>& in, const tensor<T>& gain,
                                 const tensor<T>& bias, tensor<T>& out, row_moments<T>& moments) {
  using F = wide<T>;
  index const channels = gain.size();
  each_row(rows, channels, [&](index row, row_space<T> space) {
    F const* const x = space.read(channels, in.data() + row * channels);
    F const* const g = space.read(channels, gain.data());
    F const* const b = space.read(channels, bias.data());
    T* const to = out.data() + row * channels;
    F* const y = space.make(channels, to);
    F sum = 0;
#pragma omp simd reduction(+ : sum)
    for (index c = 0; c < channels; ++c) sum += x[c];
    F const mean = sum / static_cast<F>(channels);
    F squares = 0;
#pragma omp simd reduction(+ : squares)
    for (index c = 0; c < channels; ++c) squares += (x[c] - mean) * (x[c] - mean);
    F const reciprocal = F(1) / std::sqrt(squares / static_cast<F>(channels) + F(1e-5));
    normalize_row(channels, x, g, b, mean, reciprocal, y);
    space.store(channels, y, to);
    moments.mean[row] = mean;
    moments.reciprocal[row] = reciprocal;
  });
}

template <class T>
void host_backend<T>::normalize(index rows, const tensor<T>& in, const tensor<T>& gain,
                                const tensor<T>& bias, const row_moments<T>& moments,
                                tensor<T>& out) {
  index const channels = gain.size();
  each_row(rows, channels, [&](index row, row_space<T> space) {
    auto const* const x = space.read(channels, in.data() + row * channels);
    auto const* const g = space.read(channels, gain.data());
    auto const* const b = space.read(channels, bias.data());
    T* const to = out.data() + row * channels;
    auto* const y = space.make(channels, to);
    normalize_row(channels, x, g, b, moments.mean[row], moments.reciprocal[row], y);
    space.store(channels, y, to);
  });
}

template <class T>
void host_backend<T>::layer_norm_backward(index rows, const tensor<T>& in, const tensor<T>& gain,
                                          const row_moments<T>& moments, const tensor<T>& d_out,
                                          tensor<T>& d_in, tensor<T>& d_gain, tensor<T>& d_bias) {
  using F = wide<T>;
  index const channels = gain.size();
  each_row(rows, channels, [&](index row, row_space<T> space) {
    F const* const x = space.read(channels, in.data() + row * channels);
    F const* const dy = space.read(channels, d_out.data() + row * channels);
    F const* const g = space.read(channels, gain.data());
    T* const to = d_in.data() + row * channels;
    F* const dx = space.change(channels, to);
    F const mean = moments.mean[row];
    F const reciprocal = moments.reciprocal[row];
    F sum = 0;
    F product = 0;
#pragma omp simd reduction(+ : sum, product)
    for (index c = 0; c < channels; ++c) {
      F const d = dy[c] * g[c];
      sum += d;
      product += d * (x[c] - mean) * reciprocal;
    }
    sum /= static_cast<F>(channels);
    product /= static_cast<F>(channels);
#pragma omp simd
    for (index c = 0; c < channels; ++c)
      dx[c] += reciprocal * (dy[c] * g[c] - sum - (x[c] - mean) * reciprocal * product);
    space.store(channels, dx, to);
  });
  each_column_range(rows, channels, [&](index first, index count, row_space<T> space) {
    F* const dg = space.change(count, d_gain.data() + first);
    F* const db = space.change(count, d_bias.data() + first);
    for (index row = 0; row < rows; ++row) {
      row_space<T> of_row = space;
      F const* const x = of_row.read(count, in.data() + row * channels + first);
      F const* const dy = of_row.read(count, d_out.data() + row * channels + first);
      F const mean = moments.mean[row];
      F const reciprocal = moments.reciprocal[row];
#pragma omp simd
      for (index c = 0; c < count; ++c) {
        dg[c] += dy[c] * (x[c] - mean) * reciprocal;
        db[c] += dy[c];
      }
    }
    space.store(count, dg, d_gain.data() + first);
    space.store(count, db, d_bias.data() + first);
  });
}

template <class T>
void host_backend<T>::gelu(index count, const tensor<T>& in, tensor<T>& out) {
  using F = wide<T>;
  each_part(count, [&](index first, index n, row_space<T> space) {
    F const* const x = space.read(n, in.data() + first);
    F* const y = space.make(n, out.data() + first);
#pragma omp simd
    for (index i = 0; i < n; ++i) y[i] = x[i] * gelu_curve<F>::sigmoid(x[i]);
    space.store(n, y, out.data() + first);
  });
}

template <class T>
void host_backend<T>::gelu_backward(index count, const tensor<T>& in, tensor<T>& gradient) {
  using F = wide<T>;
  each_part(count, [&](index first, index n, row_space<T> space) {
    F const* const x = space.read(n, in.data() + first);
    F* const d = space.change(n, gradient.data() + first);
#pragma omp simd
    for (index i = 0; i < n; ++i) d[i] *= gelu_curve<F>::derivative(x[i]);
    space.store(n, d, gradient.data() + first);
  });
}

template <class T>
void host_backend<T>::causal_softmax(index matrices, index seq, wide<T> scale, tensor<T>& scores) {
  using F = wide<T>;
  each_row(matrices * seq, seq, [&](index row, row_space<T> space) {
    T* const to = scores.data() + row * seq;
    index const seen = row % seq + 1;
    F* const s = space.change(seen, to);
    F largest = s[0];
#pragma omp simd reduction(max : largest)
    for (index i = 0; i < seen; ++i) largest = s[i] > largest ? s[i] : largest;
    F sum = 0;
#pragma omp simd reduction(+ : sum)
    for (index i = 0; i < seen; ++i) {
      s[i] = exponential(scale * (s[i] - largest));
      sum += s[i];
    }
    F const share = F(1) / sum;
#pragma omp simd
    for (index i = 0; i < seen; ++i) s[i] *= share;
    space.store(seen, s, to);
    std::fill(to + seen, to + seq, T{});
  });
}

template <class T>
void host_backend<T>::causal_softmax_backward(index matrices, index seq, wide<T> scale,
                                              const tensor<T>& probabilities, tensor<T>& gradient) {
  using F = wide<T>;
  each_row(matrices * seq, seq, [&](index row, row_space<T> space) {
    index const seen = row % seq + 1;
    F const* const p = space.read(seen, probabilities.data() + row * seq);
    T* const to = gradient.data() + row * seq;
    F* const d = space.change(seen, to);
    F mean = 0;
#pragma omp simd reduction(+ : mean)
    for (index i = 0; i < seen; ++i) mean += p[i] * d[i];
#pragma omp simd
    for (index i = 0; i < seen; ++i) d[i] = scale * p[i] * (d[i] - mean);
    space.store(seen, d, to);
    std::fill(to + seen, to + seq, T{});
  });
}

template <class T>
void host_backend<T>::embed(index rows, index seq, const token* tokens, const tensor<T>& of_token,
                            const tensor<T>& of_position, tensor<T>& out) {
  using F = wide<T>;
  index const channels = of_token.extents()[1];
  each_row(rows, channels, [&](index row, row_space<T> space) {
    F const* const t = space.read(channels, of_token.data() + tokens[row] * channels);
    F const* const p = space.read(channels, of_position.data() + row % seq * channels);
    T* const to = out.data() + row * channels;
    F* const y = space.make(channels, to);
#pragma omp simd
    for (index c = 0; c < channels; ++c) y[c] = t[c] + p[c];
    space.store(channels, y, to);
  });
}

template <class T>
void host_backend<T>::embed_backward(index rows, index seq, const token* tokens,
                                     const tensor<T>& d_out, tensor<T>& d_of_token,
                                     tensor<T>& d_of_position) {
  index const channels = d_of_token.extents()[1];
  std::vector<index> by_token(static_cast<std::size_t>(rows));
  std::iota(by_token.begin(), by_token.end(), index{0});
  std::stable_sort(by_token.begin(), by_token.end(),
                   [&](index a, index b) { return tokens[a] < tokens[b]; });
  each_column_range(rows, channels, [&](index first, index count, row_space<T> space) {
    auto const part = [&](index row) { return d_out.data() + row * channels + first; };
    for (auto same = by_token.begin(); same != by_token.end();) {
      token const t = tokens[*same];
      auto const end = std::find_if(same, by_token.end(), [&](index r) { return tokens[r] != t; });
      add_to(d_of_token.data() + t * channels + first, count, space, end - same,
             [&](index i) { return part(same[i]); });
      same = end;
    }
    for (index position = 0; position < std::min(seq, rows); ++position)
      add_to(d_of_position.data() + position * channels + first, count, space,
             (rows - position + seq - 1) / seq, [&](index i) { return part(position + i * seq); });
  });
}

template <class T>
void host_backend<T>::add_rows(index rows, const tensor<T>& in, tensor<T>& sum) {
  index const columns = sum.size();
  each_column_range(rows, columns, [&](index first, index count, row_space<T> space) {
    add_to(sum.data() + first, count, space, rows,
           [&](index row) { return in.data() + row * columns + first; });
  });
}

template <class T>
void host_backend<T>::cross_entropy(index rows, const token* targets, wide<T> scale,
                                    const float* loss_scale, tensor<T>& logits,
                                    tensor<wide<T>>& losses) {
  using F = wide<T>;
  index const vocabulary = logits.extents()[1];
  if (loss_scale != nullptr) scale *= static_cast<F>(*loss_scale);
  each_row(rows, vocabulary, [&](index row, row_space<T> space) {
    T* const to = logits.data() + row * vocabulary;
    F* const z = space.change(vocabulary, to);
    index const target = targets[row];
    F largest = z[0];
#pragma omp simd reduction(max : largest)
    for (index i = 0; i < vocabulary; ++i) largest = z[i] > largest ? z[i] : largest;
    F const of_target = z[target] - largest;
    F sum = 0;
#pragma omp simd reduction(+ : sum)
    for (index i = 0; i < vocabulary; ++i) {
      z[i] = exponential(z[i] - largest);
      sum += z[i];
    }
    F const share = scale / sum;
#pragma omp simd
    for (index i = 0; i < vocabulary; ++i) z[i] *= share;
    z[target] -= scale;
    space.store(vocabulary, z, to);
    losses[row] = std::log(sum) - of_target;
  });
}

template <class T>
void host_backend<T>::drop(index count, const dropout& which, const tensor<T>& in, tensor<T>& out,
                           store mode) {
  using F = wide<T>;
  auto const threshold = which.threshold();
  auto const scale = static_cast<F>(which.scale());
  each_part(count, [&](index first, index n, row_space<T> space) {
    F const* const x = space.read(n, in.data() + first);
    F* const y = space.change(n, out.data() + first);
#pragma omp simd
    for (index i = 0; i < n; ++i) {
      index const at = which.first + first + i;
      auto const key = memfit::fold_high(which.key, at);
      bool const kept = memfit::noise(key, static_cast<std::uint32_t>(at)) >= threshold;
      F const value = kept ? x[i] * scale : F(0);
      y[i] = mode == store::add ? y[i] + value : value;
    }
    space.store(n, y, out.data() + first);
  });
}

template <class T>
void host_backend<T>::copy(index count, const tensor<T>& in, tensor<T>& out) {
  parallel(threads_for(threads_, count), count, [&](index begin, index end) {
    std::copy(in.data() + begin, in.data() + end, out.data() + begin);
  });
}

template <class T>
void host_backend<T>::set_zero(tensor<T>& t) {
  parallel(threads_for(threads_, t.size()), t.size(),
           [&](index begin, index end) { std::fill(t.data() + begin, t.data() + end, T{}); });
}

template class host_backend<float>;
template class host_backend<double>;
template class host_backend<bf16>;
template class host_backend<fp16>;

}  // namespace gpt2
