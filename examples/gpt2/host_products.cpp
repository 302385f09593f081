#include "host_products.hpp"

#include <omp.h>

#include <chrono>
#include <map>
#include <optional>
#include <string_view>

#include <dnnl.hpp>

#include "host_convert.hpp"
#include "parallel.hpp"

namespace gpt2 {

namespace {

template <class T>
constexpr auto type_of = dnnl::memory::data_type::f32;
template <>
constexpr auto type_of<bf16> = dnnl::memory::data_type::bf16;
template <>
constexpr auto type_of<fp16> = dnnl::memory::data_type::f16;

template <class T>
dnnl::memory::desc describe(const matrix<const T>& m) {
  using dnnl::memory;
  if (m.outer == 1 && m.inner == 1)
    return {memory::dims{m.rows, m.columns}, type_of<T>,
            memory::dims{m.row_stride, m.column_stride}};
  return {memory::dims{m.outer, m.inner, m.rows, m.columns}, type_of<T>,
          memory::dims{m.outer_stride, m.inner_stride, m.row_stride, m.column_stride}};
}

void* untyped(const void* p) {
  return const_cast<void*>(p);
}

template <class T>
index elements(const matrix<T>& m) {
  return m.outer * m.inner * m.rows * m.columns;
}

// Adds the time that it lives.
class stopwatch {
 public:
  explicit stopwatch(double& seconds) : seconds_{seconds} {}
  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;
  ~stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// One matrix after another in a buffer of floats, by rows or by columns as `m` is.
template <class T>
matrix<float> packed(float* data, matrix<const T> m) {
  bool const by_rows = m.column_stride == 1;
  m.row_stride = by_rows ? m.columns : 1;
  m.column_stride = by_rows ? 1 : m.rows;
  m.inner_stride = m.rows * m.columns;
  m.outer_stride = m.inner * m.inner_stride;
  return view_as(data, m);
}

// Calls `move(count, from, to)` for every contiguous line of two views of the same matrices.
template <class T, class U, class Move>
void each_line(int threads, matrix<T> from, matrix<U> to, Move move) {
  if (from.column_stride != 1) {
    from = from.transposed();
    to = to.transposed();
  }
  parallel(threads, from.outer * from.inner * from.rows, [&](index begin, index end) {
    for (index line = begin; line < end; ++line) {
      index const row = line % from.rows;
      index const i = line / from.rows % from.inner;
      index const o = line / from.rows / from.inner;
      auto const at = [&](const auto& m) {
        return m.data + o * m.outer_stride + i * m.inner_stride + row * m.row_stride;
      };
      move(from.columns, at(from), at(to));
    }
  });
}

}  // namespace

struct host_products::made_products {
  made_products(int count, memory& in) : threads{count}, scratch_memory{in} {}

  struct product {
    dnnl::memory::desc a, b, c, bias, scratch;
    dnnl::matmul operation;
  };

  int threads;
  memory& scratch_memory;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  // None where oneDNN has no fast product of the type.
  std::map<std::pair<dnnl::memory::data_type, product_key>, std::optional<product>> made;
  tensor<float> scratch, copies;

  template <class T>
  void run(const matrix<const T>& a, const matrix<const T>& b, const matrix<T>& c, store mode,
           const T* bias) {
    auto const& made_for = get<T>(a, b, c, mode, bias != nullptr);
    if constexpr (narrow<T>)
      if (!made_for) return run_widened(a, b, c, mode, bias);
    std::unordered_map<int, dnnl::memory> arguments{
        {DNNL_ARG_SRC, {made_for->a, engine, untyped(a.data)}},
        {DNNL_ARG_WEIGHTS, {made_for->b, engine, untyped(b.data)}},
        {DNNL_ARG_DST, {made_for->c, engine, c.data}},
        {DNNL_ARG_SCRATCHPAD, {made_for->scratch, engine, scratch.data()}}};
    if (bias != nullptr) arguments.insert({DNNL_ARG_BIAS, {made_for->bias, engine, untyped(bias)}});
    made_for->operation.execute(stream, arguments);
    stream.wait();
  }

 private:
  void grow(tensor<float>& t, const char* name, index needed) {
    if (needed <= t.size()) return;
    t = {};
    t = {name, {needed}, scratch_memory};
  }

  template <class T>
  const std::optional<product>& get(const matrix<const T>& a, const matrix<const T>& b,
                                    const matrix<const T>& c, store mode, bool has_bias) {
    std::pair const key{type_of<T>, key_of<T>(a, b, c, mode, has_bias)};
    auto found = made.find(key);
    if (found == made.end()) found = made.emplace(key, make(a, b, c, mode, has_bias)).first;
    return found->second;
  }

  template <class T>
  std::optional<product> make(const matrix<const T>& a, const matrix<const T>& b,
                              const matrix<const T>& c, store mode, bool has_bias) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (mode == store::add) {
      dnnl::post_ops sum;
      sum.append_sum(1.0F);
      attributes.set_post_ops(sum);
    }
    dnnl::memory::desc const bias =
        has_bias ? dnnl::memory::desc{{1, c.columns}, type_of<T>, dnnl::memory::format_tag::ab}
                 : dnnl::memory::desc{};
    auto const da = describe(a);
    auto const db = describe(b);
    auto const dc = describe(c);
    dnnl::matmul::desc const operation =
        has_bias ? dnnl::matmul::desc{da, db, bias, dc} : dnnl::matmul::desc{da, db, dc};
    dnnl::matmul::primitive_desc const made_for{operation, attributes, engine, narrow<T>};
    if (narrow<T> && (!made_for || std::string_view{made_for.impl_info_str()}.starts_with("ref")))
      return std::nullopt;
    auto const needed = static_cast<index>(
        (made_for.scratchpad_desc().get_size() + sizeof(float) - 1) / sizeof(float));
    grow(scratch, "scratch", needed);
    return product{da, db, dc, bias, made_for.scratchpad_desc(), dnnl::matmul{made_for}};
  }

  template <narrow T>
  void run_widened(const matrix<const T>& a, const matrix<const T>& b, const matrix<T>& c,
                   store mode, const T* bias) {
    index const needed = elements(a) + elements(b) + elements(c) + c.columns;
    grow(copies, "copies", needed);
    float* free = copies.data();
    auto const copy_of = [&](const matrix<const T>& m, bool filled) {
      auto const copy = packed(free, m);
      free += elements(m);
      if (filled)
        each_line(threads, m, copy,
                  [](index count, const T* from, float* to) { widen(count, from, to); });
      return copy;
    };
    auto const wide_a = copy_of(a, true);
    auto const wide_b = copy_of(b, true);
    auto const wide_c = copy_of(c, mode == store::add);
    if (bias != nullptr) widen(c.columns, bias, free);
    run<float>(wide_a, wide_b, wide_c, mode, bias != nullptr ? free : nullptr);
    each_line(threads, wide_c, c,
              [](index count, const float* from, T* to) { narrow_to(count, from, to); });
  }
};

host_products::host_products(int threads, memory& scratch)
    : threads_{threads}, made_{std::make_unique<made_products>(threads, scratch)} {
  omp_set_num_threads(threads);
}

host_products::~host_products() = default;

template <class T>
void host_products::multiply(matrix<const T> a, matrix<const T> b, matrix<T> c, store mode,
                             const T* bias) {
  stopwatch const measured{seconds_};
  made_->run<T>(a, b, c, mode, bias);
}

template void host_products::multiply(matrix<const float>, matrix<const float>, matrix<float>,
                                      store, const float*);
template void host_products::multiply(matrix<const bf16>, matrix<const bf16>, matrix<bf16>, store,
                                      const bf16*);
template void host_products::multiply(matrix<const fp16>, matrix<const fp16>, matrix<fp16>, store,
                                      const fp16*);

void host_products::multiply(matrix<const double> a, matrix<const double> b, matrix<double> c,
                             store mode, const double* bias) {
  auto const one_row = [&](index batch, index row) {
    index const o = batch / c.inner;
    index const i = batch % c.inner;
    double const* const a_row =
        a.data + o * a.outer_stride + i * a.inner_stride + row * a.row_stride;
    double const* const b_first = b.data + o * b.outer_stride + i * b.inner_stride;
    double* const c_row = c.data + o * c.outer_stride + i * c.inner_stride + row * c.row_stride;
    for (index column = 0; column < c.columns; ++column) {
      double sum = bias != nullptr ? bias[column] : 0.0;
      if (mode == store::add) sum += c_row[column * c.column_stride];
      for (index k = 0; k < a.columns; ++k)
        sum += a_row[k * a.column_stride] * b_first[k * b.row_stride + column * b.column_stride];
      c_row[column * c.column_stride] = sum;
    }
  };
  parallel(threads_, c.outer * c.inner * c.rows, [&](index begin, index end) {
    for (index item = begin; item < end; ++item) one_row(item / c.rows, item % c.rows);
  });
}

}  // namespace gpt2
