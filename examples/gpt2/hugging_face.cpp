#include "hugging_face.hpp"

#include <memfit/state_file/reader.hpp>
#include <memfit/state_file/writer.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "hugging_face_config.hpp"
#include "nowhere.hpp"
#include "states.hpp"
#include "user_error.hpp"

namespace gpt2 {

namespace fs = std::filesystem;
using memfit::stored_tensor;
using memfit::stored_type;
using memfit::tensor_file;

namespace {

constexpr index at_once = index{1} << 18;  // elements on their way to or from a file
constexpr const char* prefix_of_all = "transformer.";

std::string quoted(const fs::path& file) {
  return "'" + file.string() + "'";
}

// Without what may stand before it.
std::string published(const std::string& name) {
  return name.find('.') == std::string::npos ? name + ".weight" : name;
}

// Calls from_to with the ranges that a tensor moves in.
template <class FromTo>
void in_parts(index size, FromTo from_to) {
  for (index done = 0; done < size; done += at_once) from_to(done, std::min(at_once, size - done));
}

template <class Body>
auto refused_as(const char* option, Body body) {
  try {
    return body();
  } catch (const memfit::file_error& failed) {
    throw user_error(std::string{option} + ": " + failed.what());
  } catch (const user_error& failed) {
    throw user_error(std::string{option} + ": " + failed.what());
  }
}

// A file of weights by the names that transformers gives them, with and without its prefix.
class weights_file {
 public:
  explicit weights_file(const fs::path& path)
      : file_{path.string()},
        prefix_{file_.find(prefix_of_all + published("wte")) != nullptr ? prefix_of_all : ""} {}

  [[nodiscard]] config sizes() const {
    auto const& of_token = matrix("wte");
    auto const& of_position = matrix("wpe");
    config found{.layers = 1,
                 .channels = of_token.shape[1],
                 .context = of_position.shape[0],
                 .vocabulary = of_token.shape[0]};
    while (file_.find(prefix_ + "h." + std::to_string(found.layers) + ".ln_1.weight") != nullptr)
      ++found.layers;
    return found;
  }

  // Names and shapes of all.
  void require(const config& sizes) const {
    nowhere none;
    weights<float> expected{sizes, none};
    auto const all = expected.all();
    require_names(all);
    for (tensor<float> const* t : all)
      if (auto const& found = named(*t); found.shape != t->extents())
        file_.refuse(found.name, "its shape is " + shape(found.shape) + ", expected " +
                                     shape(t->extents()) + " with the sizes of the other tensors");
  }

  template <class T>
  void read(weights<T>& into) const {
    require_tied();
    for (tensor<T>* t : into.all()) {
      auto const& from = named(*t);
      switch (from.type) {
        case stored_type::f32:
          read<float>(from, *t);
          break;
        case stored_type::f16:
          read<fp16>(from, *t);
          break;
        case stored_type::bf16:
          read<bf16>(from, *t);
          break;
        default:
          file_.refuse(from.name, std::string{"its type is "} + memfit::text_of(from.type) +
                                      ", expected F32, F16 or BF16");
      }
    }
  }

 private:
  template <class T>
  const stored_tensor& named(const tensor<T>& t) const {
    return file_.at(prefix_ + published(t.name()));
  }

  const stored_tensor& matrix(const char* name) const {
    auto const& found = file_.at(prefix_ + published(name));
    bool const is_one =
        found.shape.size() == 2 && std::all_of(found.shape.begin(), found.shape.end(),
                                               [](index n) { return n >= 1 && n <= largest_size; });
    if (!is_one)
      file_.refuse(found.name, "its shape is " + shape(found.shape) +
                                   ", expected two extents of 1 to " +
                                   std::to_string(largest_size));
    return found;
  }

  // Of attention, which follow from the context, and the head, which has the embedding's weights.
  [[nodiscard]] bool says_nothing_new(const std::string& name) const {
    return name == head || (name.starts_with(prefix_ + "h.") &&
                            (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")));
  }

  void require_names(const std::vector<tensor<float>*>& expected) const {
    std::set<std::string> wanted;
    for (tensor<float> const* t : expected) wanted.insert(prefix_ + published(t->name()));
    std::vector<std::string> missing, unknown;
    for (auto const& name : wanted)
      if (file_.find(name) == nullptr) missing.push_back(name);
    for (auto const& t : file_.tensors())
      if (!wanted.contains(t.name) && !says_nothing_new(t.name)) unknown.push_back(t.name);
    if (missing.empty() && unknown.empty()) return;
    file_.refuse("these are not the tensors of a GPT-2:" + list(" missing ", missing) +
                 list(" unknown ", unknown));
  }

  static std::string list(const char* what, const std::vector<std::string>& names) {
    constexpr std::ptrdiff_t most = 10;
    std::string text;
    for (auto const& name : names) {
      if (&name - names.data() == most)
        return text + " and " + std::to_string(std::ssize(names) - most) + " more";
      (text += text.empty() ? what : ", ") += "'" + name + "'";
    }
    return text;
  }

  static std::string shape(const std::vector<index>& extents) {
    std::string text = "[";
    for (index const n : extents) (text += text.size() > 1 ? "," : "") += std::to_string(n);
    return text + "]";
  }

  void require_tied() const {
    auto const* const of_head = file_.find(head);
    if (of_head == nullptr) return;
    auto const& of_token = matrix("wte");
    if (of_head->type != of_token.type || of_head->shape != of_token.shape ||
        !same(*of_head, of_token))
      file_.refuse(head, "it is not '" + of_token.name + "', which this program uses for both");
  }
  bool same(const stored_tensor& a, const stored_tensor& b) const {
    std::vector<char> of_a(at_once), of_b(at_once);
    bool equal = true;
    in_parts(a.bytes(), [&](index first, index count) {
      file_.read(a, first, of_a.data(), count);
      file_.read(b, first, of_b.data(), count);
      equal = equal && std::equal(of_a.begin(), of_a.begin() + count, of_b.begin());
    });
    return equal;
  }

  template <class Stored, class T>
  void read(const stored_tensor& from, tensor<T>& to) const {
    constexpr auto size = static_cast<index>(sizeof(Stored));
    std::vector<Stored> stored(at_once);
    std::vector<T> values(at_once);
    in_parts(to.size(), [&](index first, index count) {
      file_.read(from, first * size, stored.data(), count * size);
      for (index i = 0; i < count; ++i) {
        auto const at = static_cast<std::size_t>(i);
        auto const value = static_cast<float>(stored[at]);
        values[at] = T(value);
        if (!std::isfinite(static_cast<float>(values[at])))
          file_.refuse(from.name, "element " + std::to_string(first + i) + " is " +
                                      std::to_string(value) +
                                      (std::isfinite(value) ? ", which --precision cannot hold"
                                                            : ", which is no weight"));
      }
      to.write(first, values.data(), count);
    });
  }

  static constexpr const char* head = "lm_head.weight";

  tensor_file file_;
  std::string prefix_;
};

void require_agreement(const std::string& what, const config& found, const std::string& who,
                       const some_sizes& said) {
  struct {
    const char* name;
    index found;
    std::optional<index> said;
  } const all[] = {{"layers", found.layers, said.layers},
                   {"heads", found.heads, said.heads},
                   {"channels", found.channels, said.channels},
                   {"tokens of context", found.context, said.context},
                   {"tokens of vocabulary", found.vocabulary, said.vocabulary}};
  for (auto const& each : all)
    if (each.said && *each.said != each.found)
      throw user_error(what + " has " + std::to_string(each.found) + " " + each.name + ", and " +
                       who + " " + std::to_string(*each.said));
}

index heads_of(const fs::path& file, index channels, const some_sizes& asked) {
  if (asked.heads) return *asked.heads;
  constexpr index usual = 64;
  if (channels % usual != 0)
    throw user_error("how many heads the " + std::to_string(channels) + " channels of '" +
                     file.string() +
                     "' have is in no config.json beside it; name them with --heads");
  return channels / usual;
}

}  // namespace

config sizes_in(const fs::path& file, const some_sizes& asked) {
  return refused_as("--init", [&] {
    weights_file const from{file};
    auto const described = read_config(config_beside(file));
    config found = from.sizes();
    found.heads = described.heads ? *described.heads : heads_of(file, found.channels, asked);
    require_agreement(quoted(file), found, quoted(config_beside(file)) + " says", described);
    require_agreement(quoted(file), found, "the command line asks for", asked);
    from.require(found);
    return found;
  });
}

template <class T>
void read_weights(const fs::path& file, weights<T>& into) {
  refused_as("--init", [&] { weights_file{file}.read(into); });
}

void require_place_for_weights(const fs::path& file, const config& sizes,
                               const std::vector<fs::path>& inputs) {
  require_writable("--export", file, inputs);
  refused_as("--export", [&] {
    auto const description = config_beside(file);
    require_agreement("the model", sizes, quoted(description) + " says", read_config(description));
  });
}

template <class T>
void write_weights(const fs::path& file, const config& sizes, weights<T>& of,
                   const values_of& values) {
  refused_as("--export", [&] {
    auto const all = of.all();
    std::vector<stored_tensor> tensors;
    for (tensor<T> const* t : all)
      tensors.push_back({prefix_of_all + published(t->name()), stored_type::f32, t->extents()});
    memfit::tensor_file_writer to{file.string(), tensors, {{"format", "pt"}}};
    for (std::size_t number = 0; number < all.size(); ++number)
      in_parts(all[number]->size(), [&](index first, index count) {
        to.write(number, values(number, first, count).data(),
                 count * static_cast<index>(sizeof(float)));
      });
    to.commit();
    auto const description = config_beside(file);
    if (!fs::exists(description)) write_config(description, sizes);
  });
}

#define GPT2_HUGGING_FACE(T)                                \
  template void read_weights(const fs::path&, weights<T>&); \
  template void write_weights(const fs::path&, const config&, weights<T>&, const values_of&);

GPT2_HUGGING_FACE(float)
GPT2_HUGGING_FACE(bf16)
GPT2_HUGGING_FACE(fp16)

}  // namespace gpt2
