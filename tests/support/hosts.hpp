// Every host executor that this machine can run: threads 1, 2 and 5, all vector widths.
// Used by tests that ask for the same bits from all of them.
#pragma once

#include <string>
#include <vector>

#include "memfit/exec/host.hpp"

namespace test {

struct host_case {
  memfit::host exec;
  std::string name;
};

/// The scalar executor with one thread comes first: the others are compared with it.
inline std::vector<host_case> all_hosts() {
  std::vector<host_case> hosts;
  for (auto [isa, name] :
       {std::pair{memfit::isa::scalar, "scalar"}, std::pair{memfit::isa::avx2, "avx2"},
        std::pair{memfit::isa::avx512, "avx512"}}) {
    if (!memfit::host::supports(isa)) continue;
    for (int threads : {1, 2, 5})
      hosts.push_back({memfit::host{threads, isa},
                       std::string(name).append("/").append(std::to_string(threads))});
  }
  return hosts;
}

}  // namespace test
