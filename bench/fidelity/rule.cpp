// One rule with every format of the library, by memfit's own step. Built once per rule, with
// FIDELITY_RULE its name.
#include <memfit/memfit.hpp>
#include <memfit/step.hpp>

#include <array>

#include "contests.hpp"
#include "exact.hpp"

namespace memfit::bench {

namespace {

using rule_type = FIDELITY_RULE;

/// Codes and scales of one moment.
struct moment_bytes {
  std::vector<unsigned char> codes;
  std::vector<float> scales;
};

template <class Format>
class stepped : public tensor_replay {
 public:
  stepped(std::int64_t count, double lr)
      : rule_(plain_rule<rule_type>(lr)), parameter_(static_cast<std::size_t>(count)) {
    each([&]<class S>(S, moment_bytes& m) {
      m.codes.assign(static_cast<std::size_t>(S::code_bytes(count)), S::zero_byte);
      m.scales.assign(static_cast<std::size_t>(S::scale_bytes(count) / 4 + 1), 0.0f);
    });
  }

  void step(std::vector<float> const& gradient, std::int64_t step, numbers& update) override {
    std::fill(parameter_.begin(), parameter_.end(), 0.0f);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      memfit::step<Format>(host{1}, rule_, step, parameter_, gradient,
                           {{moments_[I].codes.data(), moments_[I].scales.data()}...});
    }
    (std::make_index_sequence<slots>());
    for (std::size_t i = 0; i < parameter_.size(); ++i) update[i] = -double{parameter_[i]};
  }

  static double bytes() {
    constexpr std::int64_t many = 1 << 20;
    double sum = 0;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((sum += static_cast<double>(slot_storage<rule_type, Format, int{I}>::code_bytes(many) +
                                   slot_storage<rule_type, Format, int{I}>::scale_bytes(many))),
       ...);
    }
    (std::make_index_sequence<slots>());
    return sum / many;
  }

 private:
  static constexpr std::size_t slots = slot_count<rule_type>;

  template <class Use>
  void each(Use const& use) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (use(slot_storage<rule_type, Format, int{I}>{}, moments_[I]), ...);
    }
    (std::make_index_sequence<slots>());
  }

  rule_type rule_;
  std::vector<float> parameter_;
  std::array<moment_bytes, slots> moments_;
};

template <class Format>
candidate with(char const* name) {
  return {name, stepped<Format>::bytes(),
          [](std::int64_t count, double lr) -> std::unique_ptr<tensor_replay> {
            return std::make_unique<stepped<Format>>(count, lr);
          }};
}

}  // namespace

#define FIDELITY_TEXT_OF(x) #x
#define FIDELITY_TEXT(x) FIDELITY_TEXT_OF(x)

template <>
contest contest_of<rule_type>() {
  return {FIDELITY_TEXT(FIDELITY_RULE),
          make_exact<rule_type>,
          {with<fp32>("fp32"), with<bf16>("bf16"), with<fp16>("fp16"), with<dynamic8>("dynamic8"),
           with<float8>("float8"), with<linear8>("linear8"), with<companded8>("companded8"),
           with<root8>("root8"), with<packed4>("packed4")}};
}

}  // namespace memfit::bench
