#include <nlohmann/json.hpp>

#include "report.hpp"
#include "words.hpp"

namespace advice {

namespace fit = memfit::fit;
using json = nlohmann::ordered_json;

namespace {

json of(fit::bytes const& b) {
  return {{"parameters", b.parameters},
          {"kept", b.kept},
          {"gradients", b.gradients},
          {"sums", b.sums},
          {"moments", b.moments},
          {"scales", b.scales},
          {"activations", b.activations},
          {"workspace", b.workspace},
          {"communication", b.communication},
          {"host", b.host},
          {"total", b.total()}};
}

json of(fit::technique const& t) {
  return {{"name", t.name},
          {"bytes_less", t.saves},
          {"seconds_more", t.seconds},
          {"loss_within", t.loss},
          {"effect", t.effect}};
}

json of(fit::plan const& p) {
  auto const& t = p.training;
  json made{{"seconds", p.seconds},
            {"precision", name_of(p.precision)},
            {"loss_within", p.loss},
            {"parameters", t.column.name},
            {"moments", t.states.format},
            {"micro_batch", t.micro_batch},
            {"accumulation", name_of(t.accumulation)},
            {"gradient_release", t.gradient_release},
            {"activations", name_of(p.kept)},
            {"bytes", of(p.bytes)},
            {"techniques", json::array()},
            {"use", what_to_use(p)}};
  for (auto const& technique : p.techniques) made["techniques"].push_back(of(technique));
  auto const options = gpt2_options_of(p);
  made["gpt2_train"] = options ? json(*options) : json();
  return made;
}

}  // namespace

std::string as_json(options const& asked, answer const& a) {
  json made{{"model", {{"name", asked.shape.name}, {"parameters", a.parameters}}},
            {"device", {{"name", asked.device.name}, {"bytes", a.found.bytes}}},
            {"wanted",
             {{"batch", asked.wanted.batch},
              {"seq", asked.wanted.seq},
              {"precision", name_of(asked.wanted.precision)},
              {"clips", asked.wanted.clips}}},
            {"plain", of(a.found.plain)},
            {"plans", json::array()},
            {"nearest", a.found.nearest ? of(*a.found.nearest) : json()},
            {"missing", a.found.missing}};
  for (auto const& p : a.found.plans)
    if (made["plans"].size() < asked.top) made["plans"].push_back(of(p));
  return made.dump(2) + "\n";
}

}  // namespace advice
