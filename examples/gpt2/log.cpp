#include "log.hpp"

#include <cerrno>
#include <cstring>

#include <nlohmann/json.hpp>

#include "user_error.hpp"

namespace gpt2 {

namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& reason) {
  throw user_error("cannot write the log '" + path.string() + "': " + reason);
}

}  // namespace

step_log::step_log(const std::optional<std::filesystem::path>& path,
                   const std::vector<std::filesystem::path>& inputs) {
  if (!path) return;
  path_ = *path;
  for (auto const& input : inputs) {
    std::error_code absent;
    if (std::filesystem::equivalent(path_, input, absent))
      refuse(path_, "it is one of the files to train on");
  }
  out_.open(path_);
  if (!out_) refuse(path_, std::strerror(errno));
}

void step_log::write(const report& r) {
  if (!out_.is_open()) return;
  nlohmann::ordered_json line{{"step", r.step}, {"loss", r.loss}};
  if (r.val_loss) line["val_loss"] = *r.val_loss;
  line["lr"] = r.lr;
  if (r.loss_scale) line["loss_scale"] = *r.loss_scale;
  if (r.gradient_norm) line["gradient_norm"] = *r.gradient_norm;
  if (r.skipped) line["skipped"] = *r.skipped;
  line["tokens_per_s"] = r.tokens_per_s;
  auto& bytes = line["bytes"];
  for (std::size_t i = 0; i < category_names.size(); ++i)
    bytes[std::string{category_names[i]}] = r.bytes[static_cast<category>(i)];
  bytes["total"] = r.total_bytes;
  line["peak_rss"] = r.peak_rss;
  line["checkpoint"] = r.checkpoint;
  line["planned_activations"] = r.planned_activations;
  out_ << line.dump() << std::endl;
  if (!out_) refuse(path_, std::strerror(errno));
}

}  // namespace gpt2
