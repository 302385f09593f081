#include "report.hpp"

#include <sys/resource.h>

namespace gpt2 {

index peak_rss() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return index{usage.ru_maxrss} * 1024;
}

}  // namespace gpt2
