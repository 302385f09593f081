#include "states.hpp"

#include <memfit/state_file.hpp>

#include <algorithm>

#include "user_error.hpp"

namespace gpt2 {

namespace {

template <class T>
class weights_part final : public memfit::state_part {
 public:
  explicit weights_part(weights<T>& w) : all_{w.all()} {}

  void list(std::vector<memfit::stored_tensor>& tensors, memfit::stored_words&) override {
    for (tensor<T>* t : all_) tensors.push_back(stored(*t));
  }
  void write(memfit::tensor_file_writer& to, std::size_t first) override {
    for (tensor<T>* t : all_) {
      in_parts(*t, [&](index done, index count) {
        t->read(done, part_.data(), count);
        to.write(first, part_.data(), count * static_cast<index>(sizeof(T)));
      });
      ++first;
    }
  }
  void prepare(const memfit::tensor_file& from) override {
    found_.clear();
    for (tensor<T>* t : all_) found_.push_back(&from.expect(stored(*t)));
  }
  void take(const memfit::tensor_file& from) override {
    for (std::size_t i = 0; i < all_.size(); ++i)
      in_parts(*all_[i], [&](index done, index count) {
        constexpr auto size = static_cast<index>(sizeof(T));
        from.read(*found_[i], done * size, part_.data(), count * size);
        all_[i]->write(done, part_.data(), count);
      });
  }

 private:
  static memfit::stored_tensor stored(const tensor<T>& t) {
    return {t.name(), memfit::stored_as<T>, t.extents()};
  }
  template <class Move>
  void in_parts(const tensor<T>& t, Move move) {
    for (index done = 0; done < t.size(); done += std::ssize(part_))
      move(done, std::min<index>(std::ssize(part_), t.size() - done));
  }

  std::vector<tensor<T>*> all_;
  std::vector<const memfit::stored_tensor*> found_;  // once they are prepared
  std::vector<T> part_ = std::vector<T>(std::size_t{1} << 18);
};

class step_part final : public memfit::state_part {
 public:
  step_part(index& step, index seed) : step_{step}, seed_{seed} {}

  void list(std::vector<memfit::stored_tensor>&, memfit::stored_words& words) override {
    words.emplace_back("gpt2.step", std::to_string(step_));
    words.emplace_back("gpt2.seed", std::to_string(seed_));
  }
  void write(memfit::tensor_file_writer&, std::size_t) override {}
  void prepare(const memfit::tensor_file& from) override {
    from.expect("gpt2.seed", std::to_string(seed_));
    found_ = from.number_at<index>("gpt2.step");
    if (found_ < 0) from.refuse("gpt2.step is " + std::to_string(found_));
  }
  void take(const memfit::tensor_file&) override { step_ = found_; }

 private:
  index& step_;
  index seed_;
  index found_ = 0;
};

std::vector<memfit::state_part*> list(const state_parts& parts) {
  std::vector<memfit::state_part*> all;
  for (auto const& p : parts) all.push_back(p.get());
  return all;
}

}  // namespace

template <class T>
std::unique_ptr<memfit::state_part> states_of(weights<T>& w) {
  return std::make_unique<weights_part<T>>(w);
}

std::unique_ptr<memfit::state_part> states_of(index& step, index seed) {
  return std::make_unique<step_part>(step, seed);
}

void require_writable(const char* option, const std::filesystem::path& path,
                      const std::vector<std::filesystem::path>& inputs) {
  for (auto const& input : inputs) {
    std::error_code absent;
    if (std::filesystem::equivalent(path, input, absent))
      throw user_error(std::string{option} + ": '" + path.string() +
                       "' is one of the files to train on");
  }
  try {
    memfit::tensor_file_writer const to{path.string(), {}};
  } catch (const memfit::file_error& failed) {
    throw user_error(std::string{option} + ": " + failed.what());
  }
}

void save(const std::filesystem::path& path, const state_parts& parts) {
  try {
    memfit::save_state(path.string(), list(parts));
  } catch (const memfit::file_error& failed) {
    throw user_error(std::string{"--save: "} + failed.what());
  }
}

void resume(const std::filesystem::path& path, const state_parts& parts) {
  try {
    memfit::load_state(memfit::tensor_file{path.string()}, list(parts));
  } catch (const memfit::file_error& failed) {
    throw user_error(std::string{"--resume: "} + failed.what());
  }
}

template std::unique_ptr<memfit::state_part> states_of(weights<float>&);
template std::unique_ptr<memfit::state_part> states_of(weights<bf16>&);
template std::unique_ptr<memfit::state_part> states_of(weights<fp16>&);

}  // namespace gpt2
