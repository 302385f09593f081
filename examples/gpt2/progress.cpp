#include "progress.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "../shared/text.hpp"

namespace gpt2 {

using shared::text;

namespace {

std::string readable_time(double seconds) {
  auto const whole = std::llround(seconds);
  if (whole >= 3600) return text("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  return text("%lld:%02lld", whole / 60, whole % 60);
}

std::string describe(const report& r) {
  std::string line = text("step %lld of %lld  loss %.4f", static_cast<long long>(r.step),
                          static_cast<long long>(r.steps), r.loss);
  if (r.val_loss) line += text("  validation %.4f", *r.val_loss);
  if (r.loss_scale) line += text("  scale %g", static_cast<double>(*r.loss_scale));
  if (r.gradient_norm) line += text("  norm %.3g", *r.gradient_norm);
  if (r.skipped) line += text("  skipped %lld", static_cast<long long>(*r.skipped));
  line += text("  %.0f tokens/s", r.tokens_per_s);
  line += "  " + readable_time(r.seconds_left) + " left";
  line += "  states " + readable_bytes(r.bytes.states());
  return line + "  peak " + readable_bytes(r.peak_rss);
}

// A line that fills the terminal's width would leave a copy behind at every renewal.
std::string clipped(std::string line) {
  auto const columns = static_cast<std::size_t>(terminal_columns().value_or(0));
  if (columns > 1 && line.size() >= columns) line.resize(columns - 1);
  return line;
}

}  // namespace

progress::progress() : terminal_{isatty(STDOUT_FILENO) != 0} {}

void progress::show(const report& r) {
  auto const line = describe(r);
  if (terminal_) {
    std::printf("\r\033[K%s", clipped(line).c_str());
    open_ = true;
    if (r.val_loss) end();
  } else {
    auto const now = std::chrono::steady_clock::now();
    bool const always = r.step == 1 || r.step == r.steps || r.val_loss.has_value();
    if (!always && now < next_line_) return;
    next_line_ = now + std::chrono::seconds{1};
    std::printf("%s\n", line.c_str());
  }
  std::fflush(stdout);
}

void progress::end() {
  if (open_) std::printf("\n");
  open_ = false;
}

}  // namespace gpt2
