// What a Llama of 7 billion parameters takes, and what to turn on so that it trains on one card.
#include <memfit/memfit.hpp>

#include <cstdio>

int main() {
  // example-begin fitting
  namespace fit = memfit::fit;
  auto const llama = fit::transformer(fit::known_model("llama-2-7b"));  // or your own fit::model
  fit::wanted wanted{.batch = 16, .seq = 2048};
  wanted.offered.storages = {
      {{memfit::cost_of_column<memfit::fp32>()}, {memfit::cost_of<memfit::adamw, memfit::fp32>()}},
      {{memfit::cost_of_column<memfit::corrected<memfit::bf16>>(), fit::precision::bits24},
       {memfit::cost_of<memfit::adamw, memfit::root8>(), fit::precision::bits24}}};
  auto const answer = fit::plans(llama, fit::device_named("a100-80g"), wanted);
  for (auto const& use : answer.plans.front().techniques)  // of the fastest that fits
    std::printf("%s: %.1f GB less\n", use.name.c_str(), static_cast<double>(use.saves) / 1e9);
  // example-end fitting
  auto const& best = answer.plans.front();
  std::printf("%.1f GB become %.1f GB\n", static_cast<double>(answer.plain.bytes.total()) / 1e9,
              static_cast<double>(best.bytes.total()) / 1e9);
  return best.bytes.total() <= answer.bytes && best.bytes.total() < answer.plain.bytes.total() ? 0
                                                                                               : 1;
}
