#include "fitting.hpp"

#include <memfit/core/error.hpp>
#include <memfit/fit/estimate.hpp>
#include <memfit/fit/plan.hpp>
#include <memfit/fit/transformer.hpp>

#include <algorithm>
#include <array>
#include <numeric>

#include "../shared/bytes.hpp"
#include "costs.hpp"
#include "host_rows.hpp"

namespace gpt2 {

namespace fit = memfit::fit;

namespace {

using shared::readable_bytes;

// Rows in float of every thread: see host_rows.hpp.
index bytes_of_rows(const options& o, const fit::pass& p) {
  if (p.element_bytes == sizeof(float)) return 0;
  index const widest = std::max({o.sizes.vocabulary, 4 * o.sizes.channels, index{1024}});
  return o.threads * row_spaces<bf16>::rows * row_space<bf16>::padded(widest) *
         static_cast<index>(sizeof(float));
}

// The matrices in float of the largest product, where there is none in their own type.
index bytes_of_copies(const options& o, const fit::pass& p) {
  if (o.precision != precision_choice::fp16) return 0;
  index const rows = p.batch * p.seq;
  index const c = o.sizes.channels;
  auto const product = [&](index outputs) {
    return rows * c + c * outputs + rows * outputs + outputs;
  };
  return std::max(product(4 * c), product(o.sizes.vocabulary)) * static_cast<index>(sizeof(float));
}

fit::model model_of(const options& o, index data) {
  auto made = fit::transformer({.name = "gpt2_train",
                                .layers = o.sizes.layers,
                                .heads = o.sizes.heads,
                                .channels = o.sizes.channels,
                                .vocabulary = o.sizes.vocabulary,
                                .context = o.sizes.context});
  made.workspace = [o, data](const fit::pass& p) {
    index const placed = 2 * p.batch * p.seq * static_cast<index>(sizeof(token));
    if (o.device != device_choice::host) return placed;
    return data + placed + bytes_of_rows(o, p) + bytes_of_copies(o, p);
  };
  return made;
}

fit::accumulation accumulation_of(const options& o) {
  if (o.micro_batch == o.batch) return fit::accumulation::none;
  if (o.release) return fit::accumulation::folded;
  return o.accumulate_in == sum_choice::bf16 ? fit::accumulation::bf16 : fit::accumulation::fp32;
}

bool clips(const options& o) {
  return o.clip_norm || o.clip_percentile;
}

auto schedule_of(const checkpoint_choice& choice, index free) {
  return [choice, free](const memfit::checkpoint::chain& stages) {
    return plan_for(choice, stages, [free] { return free; });
  };
}

fit::training training_of(const options& o, index free) {
  return {.batch = o.batch,
          .micro_batch = o.micro_batch,
          .seq = o.seq,
          .column = cost_of(o.precision, o.parameters).cost,
          .states = cost_of(o.optimizer, o.state).cost,
          .accumulation = accumulation_of(o),
          .gradient_release = o.release,
          .clips = clips(o),
          .schedule = schedule_of(o.checkpoint, free)};
}

// Released gradients are in the places of the tables, of one block and of the last norm; the
// estimate has those that are there at a time: the table of tokens and one of the others.
index places_beside_released(const options& o) {
  index const c = o.sizes.channels;
  std::array const places{o.sizes.context * c, 12 * c * c + 13 * c, 2 * c};
  return std::accumulate(places.begin(), places.end(), index{0}) -
         *std::max_element(places.begin(), places.end());
}

byte_counts counts_of(const options& o, const fit::bytes& b) {
  byte_counts all;
  all[category::parameters] = b.parameters;
  all[category::kept] = b.kept;
  all[category::gradients] = b.gradients;
  all[category::sums] = b.sums;
  all[category::moments] = b.states() - b.scales;
  all[category::scales] = b.scales;
  all[category::activations] = b.activations;
  all[category::workspace] = b.workspace;
  if (o.release)
    all[category::gradients] +=
        places_beside_released(o) * (o.precision == precision_choice::fp32 ? 4 : 2);
  return all;
}

// The choices that a storage stands for.
struct storage {
  precision_choice precision;
  column_choice column;
  state_choice state;
};

bool is_built(const options& o, const storage& s) {
  if (o.optimizer == rule_choice::sgd)
    return s.column == column_choice::exact && s.state == state_choice::fp32;
  return is_offered(o.optimizer, s.precision, s.column, s.state);
}

// Of the built ones those that leave what is fixed; fp16, which wants a loss scale, only where it
// is.
std::vector<storage> storages_of(const options& o) {
  std::vector<storage> all;
  for (auto const& precision : precisions)
    for (auto const& column : parameter_columns)
      for (auto const& state : states) {
        storage const s{precision.value, column.value, state.value};
        bool const any_state = !o.fixed.state || o.optimizer == rule_choice::sgd;
        bool const wanted = (o.fixed.precision ? s.precision == o.precision
                                               : s.precision != precision_choice::fp16) &&
                            (!o.fixed.parameters || s.column == o.parameters) &&
                            (any_state || s.state == o.state);
        if (wanted && is_built(o, s)) all.push_back(s);
      }
  return all;
}

fit::storage_choice cost_of(const options& o, const storage& s) {
  return {cost_of(s.precision, s.column), cost_of(o.optimizer, s.state)};
}

// Unless what wants the gradients of a whole step is on, or the rule does not fold; see options.
bool can_release(const options& o) {
  return !o.clip_percentile && !o.captured_gradients;
}

// What auto means is the planner's to say.
bool fixes_schedule(const options& o) {
  return o.fixed.checkpoint && o.checkpoint.kind != checkpoint_kind::automatic;
}

fit::wanted wanted_of(const options& o, const std::vector<storage>& storages, index bytes) {
  fit::wanted w;
  w.batch = o.batch;
  w.micro_batch = o.fixed.micro_batch ? o.micro_batch : 0;
  w.seq = o.seq;
  w.clips = clips(o);
  w.bytes = bytes;
  auto best = fit::precision::bits16;
  for (auto const& s : storages) {
    auto const cost = cost_of(o, s);
    best = std::max(best, std::min(cost.column.precision, cost.states.precision));
    w.offered.storages.push_back(cost);
  }
  w.precision = std::min(best, fit::precision::bits24);
  w.offered.fp32_sums = !o.fixed.accumulate_in || o.accumulate_in == sum_choice::fp32;
  w.offered.bf16_sums = !o.fixed.accumulate_in || o.accumulate_in == sum_choice::bf16;
  w.offered.kept_gradients = !o.release;
  w.offered.gradient_release = can_release(o);
  w.offered.folds = can_release(o) && !o.fixed.accumulate_in;
  if (fixes_schedule(o)) w.offered.schedule = schedule_of(o.checkpoint, bytes);
  return w;
}

fit::device device_of(const options& o, index bytes) {
  if (o.device == device_choice::host) return fit::device_named("cpu", bytes);
  return {"cuda", bytes, 1e13, 1e14, 1e12, 2e10};
}

// The options of a plan. Storages are told apart by their names.
options chosen_by(const fit::plan& p, const options& o, const std::vector<storage>& storages) {
  auto const storage = std::find_if(storages.begin(), storages.end(), [&](const struct storage& s) {
    auto const cost = cost_of(o, s);
    return cost.column.cost.name == p.training.column.name &&
           cost.states.cost.format == p.training.states.format;
  });
  options c = o;
  c.precision = storage->precision;
  c.parameters = storage->column;
  if (o.optimizer != rule_choice::sgd) c.state = storage->state;
  c.micro_batch = p.training.micro_batch;
  c.release = p.training.gradient_release;
  if (p.training.accumulation == fit::accumulation::bf16) c.accumulate_in = sum_choice::bf16;
  if (fixes_schedule(o)) return c;
  switch (p.kept) {
    case fit::activations::all:
      c.checkpoint = parse_checkpoint("none");
      break;
    case fit::activations::selective:
      c.checkpoint = parse_checkpoint("selective");
      break;
    case fit::activations::checkpoints:
      c.checkpoint = planned_checkpoint(p.training.schedule);
  }
  return c;
}

// Of the memory that the run is planned for.
index bytes_of_program(const options& o) {
  return o.device == device_choice::host ? process_bytes : 0;
}
// On CUDA what cuBLASLt works in at most.
index bytes_of_scratch(const options& o) {
  return o.device == device_choice::host ? scratch_bytes : index{32} << 20;
}

std::string text_of(const fit::plan& p, const options& o, const byte_counts& all) {
  auto const program = bytes_of_program(o);
  auto text =
      "fit: " + readable_bytes(all.total() + program) + " of " + readable_bytes(*o.fit) + "\n";
  for (auto const& t : p.techniques)
    text += "  " + t.name + ": " + readable_bytes(t.saves) + " less; " + t.effect + "\n";
  return text + "estimate: " + all.text() + ", the program itself " + readable_bytes(program) +
         "\n";
}

}  // namespace

byte_counts estimated(const options& o, const surroundings& in) {
  return counts_of(o, fit::estimate(model_of(o, in.data), training_of(o, in.free)));
}

void require_room(const options& o, const surroundings& in) {
  auto const refuse = [&](const byte_counts& all, const std::string& what, index bytes) {
    throw user_error("the run would take " + readable_bytes(all.total()) + " (" + all.text() +
                     "), and " + what + " " + readable_bytes(bytes) +
                     "; --fit BYTES turns on what makes it fit");
  };
  auto const all = estimated(o, in);
  if (o.memory_limit && all.total() > *o.memory_limit)
    refuse(all, "--memory-limit is", *o.memory_limit);
  auto const program = bytes_of_program(o);
  if (all.total() > in.free - program)
    refuse(all, "beside the program's own " + readable_bytes(program) + " there are",
           std::max(index{0}, in.free - program));
}

namespace {

fit::plan_list planned(const options& o, const surroundings& in,
                       const std::vector<storage>& storages, index bytes) {
  try {
    return fit::plans(model_of(o, in.data), device_of(o, bytes), wanted_of(o, storages, bytes));
  } catch (const memfit::argument_error& impossible) {
    throw user_error("--fit " + readable_bytes(*o.fit) + ": " + impossible.what());
  }
}

}  // namespace

fitted_options fitted(const options& o, const surroundings& in) {
  index const room = std::min(*o.fit, in.free) - bytes_of_program(o);
  index const bytes = std::min(room, o.memory_limit.value_or(room));
  auto const storages = storages_of(o);
  auto const more =
      bytes_of_scratch(o) + (can_release(o) ? places_beside_released(o) * index{sizeof(float)} : 0);
  if (bytes <= more)
    throw user_error("--fit " + readable_bytes(*o.fit) + ": the program itself takes " +
                     readable_bytes(bytes_of_program(o) + more));
  auto const found = planned(o, in, storages, bytes - more);
  if (found.plans.empty())
    throw user_error("--fit " + readable_bytes(*o.fit) + ": nothing fits; the least takes " +
                     readable_bytes(found.missing) + " more (" +
                     counts_of(o, found.nearest->bytes).text() + ")");
  auto const& best = found.plans.front();
  auto chosen = chosen_by(best, o, storages);
  chosen.memory_limit = bytes;
  auto text = text_of(best, o, estimated(chosen, in));
  return {std::move(chosen), std::move(text)};
}

}  // namespace gpt2
