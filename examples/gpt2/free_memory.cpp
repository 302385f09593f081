#include "free_memory.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace gpt2 {

namespace {

constexpr auto unlimited = std::numeric_limits<index>::max();

// The number that follows `name` in a file of the kernel's; none where there is no such file or
// name, or where a word follows ("max").
std::optional<index> number_after(const std::filesystem::path& path, const std::string& name) {
  std::ifstream file{path};
  for (std::string word; file >> word;)
    if (index number = 0; word == name)
      return file >> number ? std::optional{number} : std::nullopt;
  return std::nullopt;
}

std::optional<index> number_in(const std::filesystem::path& path) {
  std::ifstream file{path};
  index number = 0;
  return file >> number ? std::optional{number} : std::nullopt;
}

index available() {
  auto const kilobytes = number_after("/proc/meminfo", "MemAvailable:");
  return kilobytes ? *kilobytes * 1024 : unlimited;
}

index left_of_address_space() {
  rlimit limit{};
  auto const used = number_after("/proc/self/status", "VmSize:");
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || !used)
    return unlimited;
  return static_cast<index>(limit.rlim_cur) - *used * 1024;
}

// The limits of the control group and of those around it.
index left_of_control_groups() {
  std::ifstream file{"/proc/self/cgroup"};
  std::string line;
  while (std::getline(file, line) && !line.starts_with("0::/")) {
  }
  if (!line.starts_with("0::/")) return unlimited;
  std::filesystem::path const root = "/sys/fs/cgroup";
  index least = unlimited;
  for (auto group = root / line.substr(4); group.native().size() >= root.native().size();
       group = group.parent_path()) {
    auto const most = number_in(group / "memory.max");
    auto const used = number_in(group / "memory.current");
    if (most && used) least = std::min(least, *most - *used);
  }
  return least;
}

}  // namespace

index free_host_bytes() {
  return std::max<index>(
      0, std::min({available(), left_of_address_space(), left_of_control_groups()}));
}

}  // namespace gpt2
