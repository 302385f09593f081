#include "host_products.hpp"

#include <omp.h>

#include <chrono>
#include <map>

#include <dnnl.hpp>

#include "parallel.hpp"

namespace gpt2 {

namespace {

template <class T>
dnnl::memory::desc describe(const matrix<T>& m) {
  using dnnl::memory;
  if (m.outer == 1 && m.inner == 1)
    return {memory::dims{m.rows, m.columns}, memory::data_type::f32,
            memory::dims{m.row_stride, m.column_stride}};
  return {memory::dims{m.outer, m.inner, m.rows, m.columns}, memory::data_type::f32,
          memory::dims{m.outer_stride, m.inner_stride, m.row_stride, m.column_stride}};
}

void* untyped(const float* p) {
  return const_cast<float*>(p);
}

}  // namespace

struct host_products::made_products {
  struct product {
    dnnl::memory::desc a, b, c, bias, scratch;
    dnnl::matmul run;
  };

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<product_key<float>, product> made;
  tensor<float> scratch{"scratch", {0}};

  const product& get(const matrix<const float>& a, const matrix<const float>& b,
                     const matrix<float>& c, store mode, bool has_bias) {
    auto const key = key_of<float>(a, b, c, mode, has_bias);
    auto found = made.find(key);
    if (found == made.end()) found = made.emplace(key, make(a, b, c, mode, has_bias)).first;
    return found->second;
  }

 private:
  product make(const matrix<const float>& a, const matrix<const float>& b, const matrix<float>& c,
               store mode, bool has_bias) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (mode == store::add) {
      dnnl::post_ops sum;
      sum.append_sum(1.0F);
      attributes.set_post_ops(sum);
    }
    dnnl::memory::desc const bias = has_bias ? dnnl::memory::desc{{1, c.columns},
                                                                  dnnl::memory::data_type::f32,
                                                                  dnnl::memory::format_tag::ab}
                                             : dnnl::memory::desc{};
    auto const da = describe(a);
    auto const db = describe(b);
    auto const dc = describe(c);
    dnnl::matmul::desc const operation =
        has_bias ? dnnl::matmul::desc{da, db, bias, dc} : dnnl::matmul::desc{da, db, dc};
    dnnl::matmul::primitive_desc const made_for{operation, attributes, engine};
    auto const needed = static_cast<index>(
        (made_for.scratchpad_desc().get_size() + sizeof(float) - 1) / sizeof(float));
    if (needed > scratch.size()) scratch = tensor<float>{"scratch", {needed}};
    return {da, db, dc, bias, made_for.scratchpad_desc(), dnnl::matmul{made_for}};
  }
};

host_products::host_products(int threads)
    : threads_{threads}, made_{std::make_unique<made_products>()} {
  omp_set_num_threads(threads);
}

host_products::~host_products() = default;

index host_products::scratch_bytes() const {
  return made_->scratch.bytes();
}

void host_products::multiply(matrix<const float> a, matrix<const float> b, matrix<float> c,
                             store mode, const float* bias) {
  auto const start = std::chrono::steady_clock::now();
  auto& own = *made_;
  auto const& product = own.get(a, b, c, mode, bias != nullptr);
  std::unordered_map<int, dnnl::memory> arguments{
      {DNNL_ARG_SRC, {product.a, own.engine, untyped(a.data)}},
      {DNNL_ARG_WEIGHTS, {product.b, own.engine, untyped(b.data)}},
      {DNNL_ARG_DST, {product.c, own.engine, c.data}},
      {DNNL_ARG_SCRATCHPAD, {product.scratch, own.engine, own.scratch.data()}}};
  if (bias != nullptr) arguments.insert({DNNL_ARG_BIAS, {product.bias, own.engine, untyped(bias)}});
  product.run.execute(own.stream, arguments);
  own.stream.wait();
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

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
