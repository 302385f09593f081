#include "host_backend.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "parallel.hpp"

namespace gpt2 {

namespace {

// Work below this many elements per thread is not worth waking another thread for.
constexpr index grain = 4096;

int threads_for(int threads, index elements) {
  return static_cast<int>(std::clamp<index>(elements / grain, 1, threads));
}

// Rows are independent: any split gives the same bits.
template <class Body>
void each_row(int threads, index rows, index columns, Body body) {
  parallel(threads_for(threads, rows * columns), rows, [&](index begin, index end) {
    for (index row = begin; row < end; ++row) body(row);
  });
}

// A sum over rows: each thread owns some columns and walks all rows in order, so again any split
// gives the same bits.
template <class Body>
void each_column_range(int threads, index rows, index columns, Body body) {
  parallel(threads_for(threads, rows * columns), columns, [&](index begin, index end) {
    for (index row = 0; row < rows; ++row) body(row, begin, end);
  });
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

template <class T>
void normalize_row(index channels, T const* x, T const* gain, T const* bias, T mean, T reciprocal,
                   T* y) {
#pragma omp simd
  for (index c = 0; c < channels; ++c) y[c] = (x[c] - mean) * reciprocal * gain[c] + bias[c];
}

}  // namespace

template <class T>
void host_backend<T>::layer_norm(index rows, const tensor<T>& in, const tensor<T>& gain,
                                 const tensor<T>& bias, tensor<T>& out, row_moments<T>& moments) {
  index const channels = gain.size();
  each_row(threads_, rows, channels, [&](index row) {
    T const* const x = in.data() + row * channels;
    T const* const g = gain.data();
    T const* const b = bias.data();
    T* const y = out.data() + row * channels;
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (index c = 0; c < channels; ++c) sum += x[c];
    T const mean = sum / static_cast<T>(channels);
    T squares = 0;
#pragma omp simd reduction(+ : squares)
    for (index c = 0; c < channels; ++c) squares += (x[c] - mean) * (x[c] - mean);
    T const reciprocal = T(1) / std::sqrt(squares / static_cast<T>(channels) + T(1e-5));
    normalize_row(channels, x, g, b, mean, reciprocal, y);
    moments.mean[row] = mean;
    moments.reciprocal[row] = reciprocal;
  });
}

template <class T>
void host_backend<T>::normalize(index rows, const tensor<T>& in, const tensor<T>& gain,
                                const tensor<T>& bias, const row_moments<T>& moments,
                                tensor<T>& out) {
  index const channels = gain.size();
  each_row(threads_, rows, channels, [&](index row) {
    normalize_row(channels, in.data() + row * channels, gain.data(), bias.data(), moments.mean[row],
                  moments.reciprocal[row], out.data() + row * channels);
  });
}

template <class T>
void host_backend<T>::layer_norm_backward(index rows, const tensor<T>& in, const tensor<T>& gain,
                                          const row_moments<T>& moments, const tensor<T>& d_out,
                                          tensor<T>& d_in, tensor<T>& d_gain, tensor<T>& d_bias) {
  index const channels = gain.size();
  each_row(threads_, rows, channels, [&](index row) {
    T const* const x = in.data() + row * channels;
    T const* const dy = d_out.data() + row * channels;
    T const* const g = gain.data();
    T* const dx = d_in.data() + row * channels;
    T const mean = moments.mean[row];
    T const reciprocal = moments.reciprocal[row];
    T sum = 0;
    T product = 0;
#pragma omp simd reduction(+ : sum, product)
    for (index c = 0; c < channels; ++c) {
      T const d = dy[c] * g[c];
      sum += d;
      product += d * (x[c] - mean) * reciprocal;
    }
    sum /= static_cast<T>(channels);
    product /= static_cast<T>(channels);
#pragma omp simd
    for (index c = 0; c < channels; ++c)
      dx[c] += reciprocal * (dy[c] * g[c] - sum - (x[c] - mean) * reciprocal * product);
  });
  each_column_range(threads_, rows, channels, [&](index row, index begin, index end) {
    T const* const x = in.data() + row * channels;
    T const* const dy = d_out.data() + row * channels;
    T* const dg = d_gain.data();
    T* const db = d_bias.data();
    T const mean = moments.mean[row];
    T const reciprocal = moments.reciprocal[row];
#pragma omp simd
    for (index c = begin; c < end; ++c) {
      dg[c] += dy[c] * (x[c] - mean) * reciprocal;
      db[c] += dy[c];
    }
  });
}

template <class T>
void host_backend<T>::gelu(index count, const tensor<T>& in, tensor<T>& out) {
  parallel(threads_for(threads_, count), count, [&](index begin, index end) {
    T const* const x = in.data();
    T* const y = out.data();
#pragma omp simd
    for (index i = begin; i < end; ++i) y[i] = x[i] * gelu_curve<T>::sigmoid(x[i]);
  });
}

template <class T>
void host_backend<T>::gelu_backward(index count, const tensor<T>& in, tensor<T>& gradient) {
  parallel(threads_for(threads_, count), count, [&](index begin, index end) {
    T const* const x = in.data();
    T* const d = gradient.data();
#pragma omp simd
    for (index i = begin; i < end; ++i) d[i] *= gelu_curve<T>::derivative(x[i]);
  });
}

template <class T>
void host_backend<T>::causal_softmax(index matrices, index seq, T scale, tensor<T>& scores) {
  each_row(threads_, matrices * seq, seq, [&](index row) {
    T* const s = scores.data() + row * seq;
    index const seen = row % seq + 1;
    T largest = s[0];
#pragma omp simd reduction(max : largest)
    for (index i = 0; i < seen; ++i) largest = s[i] > largest ? s[i] : largest;
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (index i = 0; i < seen; ++i) {
      s[i] = exponential(scale * (s[i] - largest));
      sum += s[i];
    }
    T const share = T(1) / sum;
#pragma omp simd
    for (index i = 0; i < seen; ++i) s[i] *= share;
    std::fill(s + seen, s + seq, T(0));
  });
}

template <class T>
void host_backend<T>::causal_softmax_backward(index matrices, index seq, T scale,
                                              const tensor<T>& probabilities, tensor<T>& gradient) {
  each_row(threads_, matrices * seq, seq, [&](index row) {
    T const* const p = probabilities.data() + row * seq;
    T* const d = gradient.data() + row * seq;
    index const seen = row % seq + 1;
    T mean = 0;
#pragma omp simd reduction(+ : mean)
    for (index i = 0; i < seen; ++i) mean += p[i] * d[i];
#pragma omp simd
    for (index i = 0; i < seen; ++i) d[i] = scale * p[i] * (d[i] - mean);
    std::fill(d + seen, d + seq, T(0));
  });
}

template <class T>
void host_backend<T>::embed(index rows, index seq, const token* tokens, const tensor<T>& of_token,
                            const tensor<T>& of_position, tensor<T>& out) {
  index const channels = of_token.extents()[1];
  each_row(threads_, rows, channels, [&](index row) {
    T const* const t = of_token.data() + tokens[row] * channels;
    T const* const p = of_position.data() + row % seq * channels;
    T* const y = out.data() + row * channels;
#pragma omp simd
    for (index c = 0; c < channels; ++c) y[c] = t[c] + p[c];
  });
}

template <class T>
void host_backend<T>::embed_backward(index rows, index seq, const token* tokens,
                                     const tensor<T>& d_out, tensor<T>& d_of_token,
                                     tensor<T>& d_of_position) {
  index const channels = d_of_token.extents()[1];
  each_column_range(threads_, rows, channels, [&](index row, index begin, index end) {
    T const* const dy = d_out.data() + row * channels;
    T* const dt = d_of_token.data() + tokens[row] * channels;
    T* const dp = d_of_position.data() + row % seq * channels;
#pragma omp simd
    for (index c = begin; c < end; ++c) {
      dt[c] += dy[c];
      dp[c] += dy[c];
    }
  });
}

template <class T>
void host_backend<T>::add_rows(index rows, const tensor<T>& in, tensor<T>& sum) {
  index const columns = sum.size();
  each_column_range(threads_, rows, columns, [&](index row, index begin, index end) {
    T const* const x = in.data() + row * columns;
    T* const s = sum.data();
#pragma omp simd
    for (index c = begin; c < end; ++c) s[c] += x[c];
  });
}

template <class T>
void host_backend<T>::cross_entropy(index rows, const token* targets, T scale, tensor<T>& logits,
                                    tensor<T>& losses) {
  index const vocabulary = logits.extents()[1];
  each_row(threads_, rows, vocabulary, [&](index row) {
    T* const z = logits.data() + row * vocabulary;
    index const target = targets[row];
    T largest = z[0];
#pragma omp simd reduction(max : largest)
    for (index i = 0; i < vocabulary; ++i) largest = z[i] > largest ? z[i] : largest;
    T const of_target = z[target] - largest;
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (index i = 0; i < vocabulary; ++i) {
      z[i] = exponential(z[i] - largest);
      sum += z[i];
    }
    T const share = scale / sum;
#pragma omp simd
    for (index i = 0; i < vocabulary; ++i) z[i] *= share;
    z[target] -= scale;
    losses[row] = std::log(sum) - of_target;
  });
}

template <class T>
void host_backend<T>::drop(index count, const dropout& which, const tensor<T>& in, tensor<T>& out,
                           store mode) {
  auto const threshold = which.threshold();
  auto const scale = static_cast<T>(which.scale());
  parallel(threads_for(threads_, count), count, [&](index begin, index end) {
    T const* const x = in.data();
    T* const y = out.data();
#pragma omp simd
    for (index i = begin; i < end; ++i) {
      auto const key = memfit::fold_high(which.key, which.first + i);
      bool const kept =
          memfit::noise(key, static_cast<std::uint32_t>(which.first + i)) >= threshold;
      T const value = kept ? x[i] * scale : T(0);
      y[i] = mode == store::add ? y[i] + value : value;
    }
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
           [&](index begin, index end) { std::fill(t.data() + begin, t.data() + end, T(0)); });
}

template class host_backend<float>;
template class host_backend<double>;

}  // namespace gpt2
