#include "parallel.hpp"

#include <omp.h>

#include <algorithm>

namespace gpt2 {

void parallel(int threads, index count, const std::function<void(index, index)>& body) {
  if (count <= 0) return;
  index const parts = std::min<index>(threads, count);
#pragma omp parallel for num_threads(static_cast <int>(parts)) schedule(static, 1)
  for (index part = 0; part < parts; ++part) body(count * part / parts, count * (part + 1) / parts);
}

int this_thread() {
  return omp_get_thread_num();
}

}  // namespace gpt2
