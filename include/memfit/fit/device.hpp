// Common devices: how many bytes a run may use there, and what they do in a second.
// Used by the planner and by whoever asks for a plan by a card's name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "memfit/core/error.hpp"
#include "memfit/fit/model.hpp"

namespace memfit::fit {

/// A device as the planner sees it: bytes that a run may use, and rates that training reaches.
struct device {
  std::string name;
  std::int64_t bytes = 0;
  double flops_32 = 1e12;         ///< of products of fp32, in fp32
  double flops_16 = 1e12;         ///< of products of bf16, summed in fp32
  double memory_bytes = 1e11;     ///< per second
  double link_bytes = 1e10;       ///< per second, one way, to the host's memory
  double stage_seconds = 100e-6;  ///< to start the work of one stage, whatever its size

  rates at(std::int64_t element_bytes) const {
    return {element_bytes > 2 ? flops_32 : flops_16, memory_bytes, link_bytes};
  }
};

namespace detail {

/// What a vendor publishes: memory in MiB as the driver reports it, 10^12 operations per second
/// without sparsity, 10^9 bytes per second of memory and of the link, one way.
struct data_sheet {
  std::string_view name;
  std::int64_t mebibytes;
  double fp32, bf16, memory, link;
};

/// NVIDIA's data sheets and architecture papers, rounded. The T4 and the V100 have no units for
/// bf16, which they compute at the rate of fp32.
inline constexpr std::array data_sheets{data_sheet{"rtx-3060-12g", 12288, 12.7, 25.6, 360, 32},
                                        data_sheet{"rtx-3090", 24576, 35.6, 71, 936, 32},
                                        data_sheet{"rtx-4070", 12282, 29.1, 58.3, 504, 32},
                                        data_sheet{"rtx-4090", 24564, 82.6, 165, 1008, 32},
                                        data_sheet{"rtx-5090", 32607, 104.8, 209.5, 1792, 64},
                                        data_sheet{"t4", 15360, 8.1, 8.1, 300, 16},
                                        data_sheet{"v100-16g", 16160, 15.7, 15.7, 900, 16},
                                        data_sheet{"v100-32g", 32510, 15.7, 15.7, 900, 16},
                                        data_sheet{"a10g", 23028, 31.2, 70, 600, 32},
                                        data_sheet{"a100-40g", 40441, 19.5, 312, 1555, 32},
                                        data_sheet{"a100-80g", 81920, 19.5, 312, 2039, 32},
                                        data_sheet{"l4", 23034, 30.3, 121, 300, 32},
                                        data_sheet{"l40s", 46068, 91.6, 362, 864, 32},
                                        data_sheet{"h100-80g", 81559, 67, 989, 3350, 64},
                                        data_sheet{"h200", 143771, 67, 989, 4800, 64},
                                        data_sheet{"b200", 183359, 75, 2250, 8000, 64}};

/// Of the published rates, what training reaches.
struct reached {
  static constexpr double fp32 = 0.7, bf16 = 0.45, memory = 0.8, link = 0.75;
};

/// What driver, context, libraries and a picture on the screen take of a card.
inline constexpr std::int64_t taken_mebibytes = 768;

inline device device_of(data_sheet const& d) {
  return {std::string(d.name),
          (d.mebibytes - taken_mebibytes) << 20,
          d.fp32 * reached::fp32 * 1e12,
          d.bf16 * reached::bf16 * 1e12,
          d.memory * reached::memory * 1e9,
          d.link * reached::link * 1e9};
}

/// Two cores with wide vector units and no units for bf16, as small machines have them.
inline device some_cpu(std::int64_t bytes) {
  return {"cpu", bytes, 1.5e11, 1e11, 2e10, 2e10, 1e-6};
}

}  // namespace detail

/// "rtx-3060-12g, rtx-3090, ..., cpu".
inline std::string known_devices() {
  std::string names;
  for (auto const& d : detail::data_sheets) (names += d.name) += ", ";
  return names + "cpu";
}

/// The device of this name. Its bytes are what the driver reports less 768 MiB, or `bytes` where
/// those are given, as they must be for `cpu`. Its rates are the vendor's, of which training is
/// taken to reach 0.7 in fp32 products, 0.45 in bf16 products, 0.8 of the memory's and 0.75 of the
/// link's.
/// Throws argument_error for a name that is none of known_devices(), which it lists.
inline device device_named(std::string_view name, std::int64_t bytes = 0) {
  auto const refuse = [&](std::string const& why) -> argument_error {
    return argument_error("memfit::fit::device_named: " + why);
  };
  if (bytes < 0) throw refuse("bytes are " + std::to_string(bytes) + ", must be at least 0");
  if (name == "cpu") {
    if (bytes == 0) throw refuse("'cpu' has no bytes of its own: they must be given");
    return detail::some_cpu(bytes);
  }
  for (auto const& sheet : detail::data_sheets)
    if (sheet.name == name) {
      auto found = detail::device_of(sheet);
      if (bytes > 0) found.bytes = bytes;
      return found;
    }
  throw refuse("'" + std::string(name) + "' is none of " + known_devices());
}

}  // namespace memfit::fit
