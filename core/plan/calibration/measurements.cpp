// SPDX-License-Identifier: Apache-2.0
#include "core/plan/calibration/measurements.h"

#include <algorithm>
#include <cmath>

#include "core/plan/calibration/measured_units.h"
#include "core/plan/time/steady_state.h"

namespace mw::plan {
namespace {

// FLOP per token as MaxText counts them: 6 per weight of a product, 12 per pair of query and key and per width of all
// heads, causal or not.
double maxtext_flops(const Request& r) {
  const model::TensorInventory inventory(r.model);
  const model::Tensor* embed = inventory.find(model::Role::embed);
  double weights = static_cast<double>(inventory.parameters());
  if (!r.model.tied_embeddings && embed) weights -= static_cast<double>(embed->elements());
  double widths = 0;
  for (const model::Layer& l : r.model.layers) widths += static_cast<double>(l.heads) * l.head_dim;
  return 6 * weights + 12 * widths * r.lengths.max_len;
}

double tokens_of_a_device(const Request& r) {
  return static_cast<double>(r.train.batch) * r.train.accumulation * r.lengths.max_len / r.mesh.devices();
}

double in_unit(MeasuredQuantity what, const Request& r, const Plan& plan) {
  const DeviceMemory& memory = plan.memory;
  const auto sum = [&](std::initializer_list<MemoryCategory> categories) {
    Bytes bytes;
    for (const MemoryCategory c : categories) bytes += memory.category_peaks[c];
    return static_cast<double>(bytes.value);
  };
  const Ledger& held = memory.at_peak;
  const double live =
      static_cast<double>((held.total() - held[MemoryCategory::runtime] - held[MemoryCategory::workspace]).value);
  switch (what) {
    case MeasuredQuantity::step_seconds:
      return plan.step.seconds.value;
    case MeasuredQuantity::tokens_per_second:
      return plan.run.padded_tokens_per_second / plan.devices;
    case MeasuredQuantity::real_tokens_per_second:
      return plan.run.tokens_per_second;
    case MeasuredQuantity::samples_per_second:
      return static_cast<double>(r.train.batch * r.train.accumulation) / plan.step.seconds.value;
    case MeasuredQuantity::mfu: {
      const double peak = r.target.chip.bf16_flops.value / r.target.chip.devices_per_chip;
      return 100 * maxtext_flops(r) * tokens_of_a_device(r) / (peak * plan.step.seconds.value);
    }
    case MeasuredQuantity::active_bytes:
      return live;
    case MeasuredQuantity::reserved_bytes:
      return live * (1 + r.efficiencies.fragmentation.value);
    case MeasuredQuantity::device_bytes:
      return static_cast<double>(memory.at_peak.total().value);
    case MeasuredQuantity::state_bytes:
      return sum(
          {MemoryCategory::weights, MemoryCategory::adapters, MemoryCategory::gradients, MemoryCategory::optimizer});
    case MeasuredQuantity::activation_bytes:
      return sum({MemoryCategory::activations});
    case MeasuredQuantity::weight_bytes:
      return sum({MemoryCategory::weights});
    case MeasuredQuantity::kv_tokens:
      return plan.serve ? static_cast<double>(plan.serve->kv_tokens) : 0;
    case MeasuredQuantity::mean_ttft:
    case MeasuredQuantity::median_ttft:
      return plan.serve ? 1e3 * plan.serve->ttft.value : 0;
    case MeasuredQuantity::mean_tpot:
    case MeasuredQuantity::median_tpot:
    case MeasuredQuantity::median_itl:
      return plan.serve ? 1e3 * plan.serve->tpot.value : 0;
    case MeasuredQuantity::output_tokens_per_second:
      return plan.serve ? plan.serve->output_tokens_per_second : 0;
  }
  return 0;
}

bool more_is_faster(MeasuredQuantity what) {
  return what == MeasuredQuantity::tokens_per_second || what == MeasuredQuantity::real_tokens_per_second ||
         what == MeasuredQuantity::samples_per_second || what == MeasuredQuantity::mfu ||
         what == MeasuredQuantity::output_tokens_per_second;
}

double in_unit(MeasuredQuantity what, const SteadyState& s) {
  switch (what) {
    case MeasuredQuantity::mean_ttft:
    case MeasuredQuantity::median_ttft:
      return 1e3 * s.ttft_s;
    case MeasuredQuantity::mean_tpot:
    case MeasuredQuantity::median_tpot:
      return 1e3 * s.tpot_s;
    case MeasuredQuantity::median_itl:
      return 1e3 * s.itl_s;
    default:
      return s.output_tokens_per_s;
  }
}

}  // namespace

bool is_serving(MeasuredQuantity what) {
  return what == MeasuredQuantity::mean_ttft || what == MeasuredQuantity::median_ttft ||
         what == MeasuredQuantity::mean_tpot || what == MeasuredQuantity::median_tpot ||
         what == MeasuredQuantity::median_itl || what == MeasuredQuantity::output_tokens_per_second;
}
bool is_time(MeasuredQuantity what) {
  return what == MeasuredQuantity::step_seconds || (more_is_faster(what) && !is_serving(what));
}
bool is_speed(MeasuredQuantity what) {
  return is_time(what) ||
         (is_serving(what) && what != MeasuredQuantity::mean_ttft && what != MeasuredQuantity::median_ttft);
}
bool is_memory(MeasuredQuantity what) {
  return !is_time(what) && !is_serving(what);
}

std::vector<std::string> keep_held_out(std::vector<Measurement>& rows, const std::vector<Measurement>& published) {
  const auto same = [](const Measurement& a, const Measurement& b) {
    const Request &x = a.request, &y = b.request;
    return a.unit == b.unit && std::abs(a.value / b.value - 1) < 0.01 && x.model.id == y.model.id &&
           x.target.id == y.target.id && x.stack == y.stack &&
           x.train.batch * x.train.accumulation == y.train.batch * y.train.accumulation;
  };
  std::vector<std::string> kept;
  for (Measurement& m : rows)
    if (m.purpose == MeasurementUse::calibration)
      for (const Measurement& p : published)
        if (p.purpose == MeasurementUse::holdout && (p.id == m.id || same(m, p))) {
          m.purpose = MeasurementUse::holdout;
          kept.push_back(m.id);
          break;
        }
  return kept;
}

Comparison compare(const Measurement& row, const Plan& plan) {
  double factor = 1;
  for (const UnitName& u : kUnits)
    if (u.what == row.what) factor = u.factor;
  return compare(row, in_unit(row.what, row.request, plan) / factor);
}

Comparison compare(const Measurement& row, double predicted) {
  const double ratio = more_is_faster(row.what) ? row.value / predicted : predicted / row.value;
  return {predicted, row.value, ratio - 1};
}

Comparison predicted(const Measurement& row, const Request& request) {
  if (!is_serving(row.what)) return compare(row, predict(request));
  return predicted(row, ServeStepModel(request));
}

Comparison predicted(const Measurement& row, const ServeStepModel& model) {
  const ServeWork& s = row.request.serve;
  const int users = row.load.concurrency > 0 ? row.load.concurrency : std::max(1, row.load.requests);
  return compare(row, in_unit(row.what, steady_state(model, s, {users, s.input_len, s.output_len})));
}

ErrorSummary summarise(const std::vector<Measurement>& rows, const std::vector<Comparison>& predictions,
                       MeasurementUse purpose, bool (*of)(MeasuredQuantity)) {
  ErrorSummary s;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Measurement& m = rows[i];
    if (m.purpose != purpose || !of(m.what) || !m.counted()) continue;
    const double error = std::abs(predictions[i].error);
    ++s.rows;
    s.mean += error;
    if (error >= s.worst) s.worst = error, s.worst_row = m.id;
  }
  if (s.rows > 0) s.mean /= s.rows;
  return s;
}

}  // namespace mw::plan
