#include "gradient_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "user_error.hpp"

namespace gpt2 {

namespace {

template <class T>
std::vector<const tensor<T>*> chosen(const weights<T>& of) {
  auto const& block = of.blocks.front();
  return {
      &of.of_token,     &of.of_position, &block.query_key_value.weight, &block.query_key_value.bias,
      &block.up.weight, &of.norm.gain};
}

[[noreturn]] void refuse(const std::filesystem::path& path) {
  throw user_error("cannot write the gradients '" + path.string() + "': " + std::strerror(errno));
}

}  // namespace

gradient_file::gradient_file(const std::optional<std::filesystem::path>& path) {
  if (!path) return;
  path_ = *path;
  out_.open(path_, std::ios::binary);
  if (!out_) refuse(path_);
}

template <class T>
void gradient_file::write(weights<T>& gradients) {
  if (!out_.is_open()) return;
  auto const tensors = chosen(gradients);
  if (!begun_) {
    out_ << "memfit-gradients 1\n";
    for (auto const* t : tensors) out_ << t->name() << ' ' << t->size() << '\n';
    out_ << '\n';
    begun_ = true;
  }
  for (auto const* t : tensors) write(*t);
  if (!out_) refuse(path_);
}

template <class T>
void gradient_file::write(const tensor<T>& gradient) {
  constexpr index at_once = index{1} << 14;
  std::vector<T> stored(at_once);
  std::vector<float> values(at_once);
  for (index done = 0; done < gradient.size(); done += at_once) {
    index const count = std::min(at_once, gradient.size() - done);
    gradient.read(done, stored.data(), count);
    std::transform(stored.begin(), stored.begin() + count, values.begin(),
                   [](T x) { return static_cast<float>(x); });
    out_.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(sizeof(float)) * count);
  }
}

template void gradient_file::write(weights<float>&);
template void gradient_file::write(weights<bf16>&);
template void gradient_file::write(weights<fp16>&);

}  // namespace gpt2
