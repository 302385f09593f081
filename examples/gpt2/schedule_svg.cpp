#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "progress.hpp"
#include "schedule_picture.hpp"
#include "schedule_state.hpp"

namespace gpt2 {

namespace {

using memfit::checkpoint::act;
using memfit::checkpoint::action;
using memfit::checkpoint::chain;
using memfit::checkpoint::schedule;

constexpr double margin = 16, head = 64, curve_width = 200, longest = 2400;

constexpr const char* color_kept = "#9ecae1";
constexpr const char* color_saved = "#3182bd";
constexpr const char* color_passed = "#a1d99b";
constexpr const char* color_ran = "#31a354";
constexpr const char* color_reversed = "#e6550d";

template <class... Values>
std::string text(const char* format, Values... values) {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(), format, values...);
  return line.data();
}

std::string rectangle(double x, double y, double w, double h, const char* color) {
  return text("<rect x='%.1f' y='%.2f' width='%.1f' height='%.2f' fill='%s'/>\n", x, y, w, h,
              color);
}

std::string label(double x, double y, const std::string& words) {
  return text("<text x='%.1f' y='%.1f'>", x, y) + words + "</text>\n";
}

// Rows are the forwards and backwards in their order, columns the stages.
struct grid {
  std::size_t stages, rows;

  [[nodiscard]] double column() const {
    return std::clamp(640.0 / static_cast<double>(std::max<std::size_t>(stages, 1)), 2.0, 20.0);
  }
  [[nodiscard]] double row() const {
    return std::clamp(longest / static_cast<double>(std::max<std::size_t>(rows, 1)), 0.2, 6.0);
  }
  [[nodiscard]] double x(std::size_t stage) const {
    return margin + column() * static_cast<double>(stage);
  }
  [[nodiscard]] double y(std::size_t at) const { return head + row() * static_cast<double>(at); }
  [[nodiscard]] double curve() const { return x(stages) + margin; }
  [[nodiscard]] double width() const { return curve() + curve_width + 6 * margin; }
  [[nodiscard]] double height() const { return y(rows) + margin; }
};

// Draws each thing that is kept when it goes, as a bar from the row that made it.
class bars {
 public:
  bars(const grid& g, std::size_t count, const char* color)
      : grid_{g}, since_(count), color_{color} {}

  void follow(std::size_t stage, bool alive, std::size_t row) {
    auto& since = since_[stage];
    if (alive && !since) since = row;
    if (alive || !since) return;
    drawn_ += rectangle(grid_.x(stage), grid_.y(*since), grid_.column() - 0.5,
                        grid_.row() * static_cast<double>(row - *since), color_);
    since.reset();
  }

  [[nodiscard]] const std::string& drawn() const { return drawn_; }

 private:
  const grid& grid_;
  std::vector<std::optional<std::size_t>> since_;
  const char* color_;
  std::string drawn_;
};

const char* color_of(act what) {
  return what == act::pass ? color_passed : what == act::run ? color_ran : color_reversed;
}

std::string legend(const schedule& plan) {
  constexpr std::array<std::pair<const char*, const char*>, 5> entries{
      {{color_passed, "computed"},
       {color_ran, "computed, its results saved"},
       {color_reversed, "backward"},
       {color_saved, "saved"},
       {color_kept, "kept"}}};
  std::string drawn =
      label(margin, 20,
            text("%lld forwards of a stage, at most ", static_cast<long long>(plan.forwards)) +
                readable_bytes(plan.peak));
  double x = margin;
  for (auto const& [color, words] : entries) {
    drawn += rectangle(x, 34, 10, 10, color) + label(x + 14, 43, words);
    x += 34 + 6.5 * static_cast<double>(std::string_view{words}.size());
  }
  return drawn;
}

std::string frame(const grid& g, const std::string& drawn) {
  double const width = std::max(g.width(), 560.0);
  return text(
             "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %.0f %.0f' width='%.0f' "
             "height='%.0f' font-family='sans-serif' font-size='12'>\n",
             width, g.height(), width, g.height()) +
         "<rect width='100%' height='100%' fill='white'/>\n" + drawn + "</svg>\n";
}

}  // namespace

std::string svg(const chain& stages, const schedule& plan) {
  auto const computed = [](const action& a) { return is_compute(a.what); };
  grid const g{stages.size(), static_cast<std::size_t>(std::count_if(
                                  plan.actions.begin(), plan.actions.end(), computed))};
  schedule_state state{stages};
  bars kept{g, g.stages, color_kept}, saved{g, g.stages, color_saved};
  std::string work, line;
  std::size_t row = 0;
  for (auto const& a : plan.actions) {
    auto const bytes = static_cast<double>(state.apply(a));
    if (is_compute(a.what)) {
      work += rectangle(g.x(static_cast<std::size_t>(a.index)), g.y(row), g.column() - 0.5,
                        std::max(g.row(), 0.6), color_of(a.what));
      double const share = plan.peak == 0 ? 0 : bytes / static_cast<double>(plan.peak);
      line += text("%.1f,%.2f ", g.curve() + curve_width * share, g.y(row) + g.row() / 2);
      ++row;
    }
    for (std::size_t i = 0; i < g.stages; ++i) {
      kept.follow(i, i > 0 && state.kept(i), row);
      saved.follow(i, state.saved(i), row);
    }
  }
  return frame(g, legend(plan) + kept.drawn() + saved.drawn() + work + "<polyline points='" + line +
                      "' fill='none' stroke='#636363'/>\n" +
                      label(g.curve(), head - 6, "bytes in use"));
}

}  // namespace gpt2
