#include "budget.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "../shared/bytes.hpp"
#include "user_error.hpp"

namespace gpt2 {

index byte_counts::total() const {
  return std::accumulate(bytes_.begin(), bytes_.end(), index{0});
}

std::string byte_counts::text() const {
  std::string all;
  for (std::size_t i = 0; i < bytes_.size(); ++i)
    if (bytes_[i] != 0)
      all += (all.empty() ? "" : ", ") + std::string{category_names[i]} + " " +
             shared::readable_bytes(bytes_[i]);
  return all.empty() ? "nothing" : all;
}

void budget::take(category of, index bytes) {
  index const left = limit_.value_or(std::numeric_limits<index>::max()) - in_use_.total();
  if (bytes > left)
    throw user_error("--memory-limit " + std::to_string(*limit_) + ": " +
                     std::string{category_names[static_cast<std::size_t>(of)]} + " want " +
                     std::to_string(bytes) + " bytes more, and " + std::to_string(left) +
                     " are left; in use: " + in_use_.text());
  in_use_[of] += bytes;
  peak_[of] = std::max(peak_[of], in_use_[of]);
  peak_total_ = std::max(peak_total_, in_use_.total());
}

}  // namespace gpt2
