// SPDX-License-Identifier: Apache-2.0
#include "core/views/design_view.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/counted.h"
#include "core/base/text.h"
#include "core/mesh/collectives/engine_step.h"
#include "core/mesh/layout/size_constraints.h"
#include "core/plan/prediction/collective_time.h"
#include "core/plan/prediction/step_time.h"
#include "core/train/settings.h"

namespace mw::views {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return joined(shape, " x ", [](std::int64_t n) { return std::to_string(n); });
}

// Returns "q_proj" for "layers.12.q_proj", and the whole name for a tensor outside the layers.
std::string_view kind_of(const mesh::PlacedTensor& t) {
  const std::string_view name = t.name;
  if (t.layer < 0) return name;
  const std::size_t dot = name.find('.', std::string_view("layers.").size());
  return name.starts_with("layers.") && dot != std::string_view::npos ? name.substr(dot + 1) : name;
}

bool same_shape(const mesh::PlacedTensor& a, const mesh::PlacedTensor& b) {
  return std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
                    [](const model::Dim& x, const model::Dim& y) { return x.size == y.size; });
}

struct Sizes {
  int bytes;
  mesh::TileRule tile;
};

ShardRow row_of(const mesh::PlacedTensor& t, const Sizes& sizes, Bytes held) {
  std::vector<std::int64_t> whole;
  for (const model::Dim& d : t.dims) whole.push_back(d.size);
  const std::string_view kind = kind_of(t);
  const double exact = static_cast<double>(t.total()) * sizes.bytes / static_cast<double>(t.shards);
  return {.name = (kind == t.name ? "" : "layers.*.") + std::string(kind),
          .first = t.name,
          .shape = shape_text(whole),
          .spec = t.spec,
          .shard = shape_text(t.shard),
          .per_device = held,
          .padding = exact > 0 ? static_cast<double>(held.value) / exact - 1 : 0,
          .replicas = t.replicas,
          .rule = t.rule};
}

// A design has over a thousand tensors and is recomputed at every edit, so tensors are compared by value, not by text.
void add_rows(const std::vector<mesh::PlacedTensor>& tensors, const Sizes& sizes, bool adapters,
              std::vector<ShardRow>& rows) {
  struct Seen {
    const mesh::PlacedTensor* first;
    std::size_t row;
  };
  std::unordered_map<std::string_view, std::vector<Seen>> seen;
  for (const mesh::PlacedTensor& t : tensors) {
    std::vector<Seen>& alike = seen[kind_of(t)];
    const auto at = std::find_if(alike.begin(), alike.end(),
                                 [&](const Seen& s) { return s.first->spec == t.spec && same_shape(*s.first, t); });
    const Bytes held(mesh::padded_bytes(t.shard, sizes.bytes, sizes.tile));
    if (at != alike.end()) {
      ++rows[at->row].count;
      rows[at->row].per_device += held;
      continue;
    }
    alike.push_back({&t, rows.size()});
    rows.push_back(row_of(t, sizes, held));
    rows.back().adapter = adapters;
  }
}

const PlanLine* find(const std::vector<PlanLine>& lines, const std::string& key) {
  const auto at = std::find_if(lines.begin(), lines.end(), [&](const PlanLine& l) { return l.key == key; });
  return at == lines.end() ? nullptr : &*at;
}

std::string fixed(double value, int digits) {
  const double scale = std::pow(10.0, digits);
  return number_text(std::round(value * scale) / scale);
}

std::string percent(double share) {
  return fixed(share * 100, share < 0.1 ? 1 : 0) + " %";
}

PlanLine memory_line(const plan::Plan& p) {
  const Bytes need = p.memory.at_peak.total();
  const double share = p.memory.capacity.value > 0 ? need / p.memory.capacity : 0;
  return {.key = "memory",
          .label = "Memory per device",
          .value = to_text(need) + " of " + to_text(p.memory.capacity),
          .detail = (!p.refusals.empty() ? "cannot run, "
                     : p.fits()          ? "fits, "
                                         : "does not fit, ") +
                    percent(share) + "; peak: " + p.memory.peak_instant,
          .estimate = p.memory.total,
          .number = static_cast<double>(need.value),
          .tone = p.fits() ? PlanLine::Tone::good : PlanLine::Tone::bad,
          .headline = "Memory",
          .short_value = to_text(need),
          .note = "of " + to_text(p.memory.capacity)};
}

constexpr std::string_view kMfu = "mfu.";  // and the name of the formula

// The lines that are headlines, and their names there.
void set_headlines(std::vector<PlanLine>& lines) {
  static const std::map<std::string_view, const char*> kHeadlines{
      {"step", "Step"}, {"run", "Run"},   {"usd", "Cost"},
      {"ttft", "TTFT"}, {"tpot", "TPOT"}, {"usd_per_million_output_tokens", "1M tokens"}};
  bool utilisation = false;
  for (PlanLine& line : lines) {
    if (!line.number) continue;
    const auto known = kHeadlines.find(line.key);
    if (known != kHeadlines.end()) line.headline = known->second;
    if (line.key.starts_with(kMfu) && !std::exchange(utilisation, true)) line.headline = "MFU";
    if (line.short_value.empty()) line.short_value = line.value;
    if (line.note.empty()) line.note = "predicted";
  }
}

std::string difference(double a, double b) {
  if (a == b) return "same";
  if (a <= 0 || b <= 0) return {};
  if (b / a >= 2 || a / b >= 2) return "x " + fixed(b / a, 2);
  return (b > a ? "+" : "-") + percent(std::abs(b / a - 1));
}

std::string parts_text(const plan::StepTime& step) {
  std::string out = to_text(Seconds(step.compute.value)) + " compute + " + to_text(Seconds(step.memory.value)) +
                    " memory + " + to_text(Seconds(step.communication.value)) + " collectives";
  if (step.fixed.value > 0) out += " + " + to_text(Seconds(step.fixed.value)) + " fixed";
  if (step.hidden > 0) out += " - " + to_text(Seconds(step.hidden)) + " hidden";
  return out;
}

std::string_view step_label(plan::Work work) {
  static constexpr std::string_view kNames[] = {"Optimizer step", "Forward", "Rollout", "Decode step"};
  return kNames[static_cast<size_t>(work)];
}

PlanLine figure(std::string key, std::string label, std::string value, double number, std::string detail = {}) {
  return {.key = std::move(key),
          .label = std::move(label),
          .value = std::move(value),
          .detail = std::move(detail),
          .number = number};
}

PlanLine figure(std::string key, std::string label, std::string value, const plan::Estimate& estimate,
                std::string detail = {}) {
  return {.key = std::move(key),
          .label = std::move(label),
          .value = std::move(value),
          .detail = std::move(detail),
          .estimate = estimate,
          .number = estimate.value};
}

void add_run(const Design& design, std::vector<PlanLine>& lines) {
  const plan::RunTotals& run = design.plan().run;
  const double hours = run.hours.value;
  lines.push_back(figure("run", "Run", to_text(Seconds(hours * 3600)), run.hours,
                         counted(count_text(static_cast<double>(run.steps)), "step")));
  lines.back().note = lines.back().detail;
  if (const auto& budget = design.planned.budget) {
    lines.push_back(figure("budget", "Within the budget", to_text(*budget), static_cast<double>(budget->steps),
                           (budget->epochs > 0 ? number_text(budget->epochs, 3) + " epochs; " : std::string()) +
                               "limit: " + budget->bound));
    if (!budget->holds_the_run()) lines.back().tone = PlanLine::Tone::warn;
  }
  if (run.usd_per_hour > 0) {
    lines.push_back(
        figure("usd", "Cost", to_text(Usd(run.usd.value)), run.usd, to_text(Usd(run.usd_per_hour)) + " an hour"));
    lines.back().note = to_text(Usd(run.usd_per_hour)) + "/h";
    lines.push_back(figure("usd_per_million_tokens", "Per million tokens", to_text(Usd(run.usd_per_million_tokens)),
                           run.usd_per_million_tokens,
                           "tokens without padding; " + to_text(Usd(run.usd_per_million_padded)) + " with padding"));
  } else if (!plan::runs_here(design.request())) {
    lines.push_back({.key = "usd",
                     .label = "Cost",
                     .value = "no price known",
                     .detail = "choose a price region and class, or add one"});
  }
  lines.push_back(figure("tokens_per_second", "Throughput", count_text(run.tokens_per_second) + " tokens/s",
                         run.tokens_per_second,
                         "tokens without padding (" + percent(run.real_share) + "); " +
                             count_text(run.padded_tokens_per_second) + " with it"));
  for (const plan::Utilisation& u : run.utilisation)
    lines.push_back(figure(std::string(kMfu) + u.name, "MFU " + u.name, percent(u.share), u.share));
  if (run.packed_speedup > 1.05) {
    const double saved = 1 - 1 / run.packed_speedup;
    PlanLine line = figure("packing", "Packing would save", to_text(Seconds(hours * 3600 * saved)), hours * saved,
                           fixed(run.packed_speedup, 1) + " x the tokens without padding per second");
    if (run.usd_per_hour > 0) line.value += ", " + to_text(Usd(run.usd.value * saved));
    line.tone = run.packed_speedup > 1.4 ? PlanLine::Tone::warn : PlanLine::Tone::plain;
    lines.push_back(std::move(line));
  }
}

// The rows of the batch that takes most of them into the budget and fits into memory.
void add_size_budget(const plan::ExperimentPlan& planned, std::vector<PlanLine>& lines) {
  const plan::SizePoint* most = nullptr;
  for (const plan::SizePoint& p : planned.points)
    if (p.size.workload == planned.points.front().size.workload && p.rows_in_budget && p.plan.fits() &&
        (!most || *p.rows_in_budget > *most->rows_in_budget))
      most = &p;
  if (!most) return;
  lines.push_back(figure(
      "rows_in_budget", "Within the budget", counted(count_text(static_cast<double>(*most->rows_in_budget)), "row"),
      static_cast<double>(*most->rows_in_budget),
      std::string(to_string(most->size.workload)) + " at batch " + std::to_string(most->size.batch)));
}

// Adds the cost of training plus hours of serving; uses the measured training hours if the document has them.
void add_life(const plan::ExperimentPlan& planned, std::vector<PlanLine>& lines) {
  for (const auto* tco : {&planned.tco, &planned.measured_tco}) {
    if (!*tco) continue;
    const bool measured = tco == &planned.measured_tco;
    for (const double hours : planned.serve_hours) {
      const Usd usd = (*tco)->after(hours);
      const std::string served = number_text(hours, 3), suffix = measured ? ", measured" : "";
      lines.push_back(
          figure("tco." + served + suffix, "Trained, served " + served + " h" + suffix, to_text(usd), usd.value,
                 (*tco)->name + (measured ? "; training hours as measured" : "; training hours as predicted")));
    }
  }
}

void add_serving(const plan::ServeNumbers& s, std::vector<PlanLine>& lines) {
  lines.push_back(figure("kv_tokens", "KV cache", counted(count_text(static_cast<double>(s.kv_tokens)), "token"),
                         static_cast<double>(s.kv_tokens),
                         to_text(Bytes(static_cast<std::int64_t>(s.kv_bytes_per_token))) + " per token and device"));
  lines.push_back(figure("ttft", "TTFT, idle server", to_text(Seconds(s.ttft.value)), s.ttft));
  if (s.tpot.value > 0)
    lines.push_back(figure(
        "tpot", "TPOT", to_text(Seconds(s.tpot.value)), s.tpot,
        "beside the prompts of others; a step that only decodes takes " + to_text(Seconds(s.decode_step.value))));
  lines.push_back(figure("output_tokens_per_second", "Output", count_text(s.output_tokens_per_second) + " tokens/s",
                         s.output_tokens_per_second));
  if (s.usd_per_million_output_tokens > 0)
    lines.push_back(figure("usd_per_million_output_tokens", "Per million output tokens",
                           to_text(Usd(s.usd_per_million_output_tokens)), s.usd_per_million_output_tokens));
}

}  // namespace

std::vector<ShardRow> shard_rows(const Design& design) {
  const auto sizes = [&](model::DType type) {
    const int bytes = model::bytes_of(type);
    return Sizes{bytes, mesh::tile_of(design.request().target.chip, bytes)};
  };
  std::vector<ShardRow> rows;
  add_rows(design.placement.tensors, sizes(design.request().weights), false, rows);
  add_rows(design.placement.adapters, sizes(design.request().profile.adapters), true, rows);
  return rows;
}

std::vector<PlanLine> plan_lines(const Design& design) {
  const plan::Plan& p = design.plan();
  std::vector<PlanLine> lines{memory_line(p)};
  if (const auto& trained = design.planned.trainable)
    lines.push_back(figure("trained", "Trained", train::to_text(*trained), static_cast<double>(trained->params),
                           "saved in " + to_text(trained->file)));
  lines.push_back(figure("step", std::string(step_label(design.request().work)), to_text(Seconds(p.step.seconds.value)),
                         p.step.seconds, parts_text(p.step)));
  if (const std::string& by = design.request().calibrated; !by.empty())
    lines.push_back(
        {.key = "calibrated", .label = "Calibrated", .value = by.substr(std::string_view("calibrated ").size())});
  else if (plan::runs_here(design.request()))
    lines.push_back({.key = "rates", .label = "Rates", .value = design.request().efficiencies.matmul.source});
  if (design.request().work == plan::Work::train) add_run(design, lines);
  add_size_budget(design.planned, lines);
  add_life(design.planned, lines);
  if (p.serve) add_serving(*p.serve, lines);
  if (p.compile.value > 0)
    lines.push_back(
        figure("compile", "Compile", to_text(Seconds(p.compile.value)), p.compile, "before the first step"));
  set_headlines(lines);
  return lines;
}

std::string difference(const PlanLine& baseline, const PlanLine& other) {
  return baseline.number && other.number ? difference(*baseline.number, *other.number) : "";
}

std::string difference(const ShardRow* baseline, const ShardRow& other) {
  if (!baseline) return "new";
  const std::string bytes =
      difference(static_cast<double>(baseline->per_device.value), static_cast<double>(other.per_device.value));
  return baseline->spec == other.spec ? bytes : bytes + ", was " + mesh::to_text(baseline->spec);
}

std::string change_text(const Design& before, const Design& after) {
  const auto memory = [](const Design& d) { return d.plan().memory.at_peak.total(); };
  const auto value = [](const Design& d) { return d.plan().step.seconds.value; };
  const auto text = [&](const Design& d) { return to_text(Seconds(value(d))); };
  std::string from = text(before);
  const std::string to = text(after), unit = to.find(' ') == std::string::npos ? "" : to.substr(to.find(' '));
  if (from == to) return to + " per step, unchanged";
  if (!unit.empty() && from.ends_with(unit)) from.resize(from.size() - unit.size());
  const double change = value(before) > 0 ? value(after) / value(before) - 1 : 0;
  std::string out = from + " to " + to + " (" + (change > 0 ? "+" : "-") + percent(std::abs(change)) + ")";
  if (!after.plan().fits())
    out += "; does not fit: " + to_text(memory(after)) + " of " + to_text(after.plan().memory.capacity);
  return out;
}

Heading heading(const Design& design, const Design* other) {
  const plan::Request& r = design.request();
  Heading out;
  if (other && other->request().model.id != r.model.id) out.what.push_back({r.model.id, true});
  out.what.push_back({r.target.id, other && other->request().target.id != r.target.id});
  for (const mesh::MeshAxis& axis : r.mesh.axes) {
    const bool changed = other && other->request().mesh.size(axis.name) != axis.size;
    out.what.push_back({axis.name + " " + std::to_string(axis.size), changed});
  }
  const std::vector<PlanLine> lines = plan_lines(design), others = other ? plan_lines(*other) : std::vector<PlanLine>();
  const auto add = [&](const std::string& key, const std::string& unit) {
    const PlanLine* line = find(lines, key);
    if (!line || !line->number) return;
    const PlanLine* beside = find(others, key);
    const std::string change = beside ? difference(*beside, *line) : "";
    const bool changed = !change.empty() && change != "same";
    out.comes_to.push_back({line->value + unit + (changed ? " (" + change + ")" : ""), changed});
  };
  add("step", " per step");
  add("usd", "");
  return out;
}

std::string provenance(const plan::Estimate& e) {
  std::string out = "predicted, " + std::string(to_string(e.origin));
  if (e.low != e.high) out += ", between " + number_text(e.low, 3) + " and " + number_text(e.high, 3);
  for (const auto& [label, text] :
       {std::pair{"", &e.formula}, std::pair{"= ", &e.inputs}, std::pair{"from ", &e.source}})
    if (!text->empty()) out += std::string("\n") + label + *text;
  return out;
}

namespace {

// The engine takes a rank per module from its own options.
std::vector<mesh::AdapterShape> adapters_of(const experiment::Experiment& e, const plan::Request& r,
                                            const model::TensorInventory& inventory) {
  const bool here = r.stack == model::Stack::engine && r.method == model::TrainMethod::lora && !r.targets.empty();
  return here ? train::adapter_shapes(r.model, e.config().lora) : plan::adapter_shapes(r, inventory);
}

void set_collectives(Design& d, std::vector<mesh::Collective> list) {
  const plan::Request& r = d.request();
  d.collectives = std::move(list);
  d.seconds.clear();
  for (const mesh::Collective& c : d.collectives)
    d.seconds.push_back(plan::collective_seconds(c, d.layout, r.target, r.efficiencies));
}

mesh::EngineStep engine_step_of(const plan::Request& r) {
  return {.work = r.method == model::TrainMethod::full ? mesh::StepKind::train_full : mesh::StepKind::train_lora,
          .weight_bytes = model::bytes_of(r.weights),
          .recompute = r.train.remat == model::Remat::none ? mesh::Recompute::none : mesh::Recompute::layers};
}

// Returns the collectives that the first device of the engine executes in a step.
std::vector<mesh::Collective> engine_collectives(const plan::Request& r, const mesh::Placement& placement,
                                                 const plan::EngineRows& rows) {
  const mesh::DeviceTokens own{.tokens = rows.real_tokens, .loss_tokens = rows.loss_tokens};
  const std::vector<mesh::DeviceTokens> micro(static_cast<size_t>(std::max(1, r.train.accumulation)), own);
  return mesh::DeviceCollectives(r.model, r.mesh, placement, engine_step_of(r)).of(0, micro);
}

}  // namespace

Design design(const experiment::Experiment& experiment, const plan::PlanContext& context, plan::ReadData read_data,
              const std::stop_token& stop) {
  Design d;
  d.experiment = experiment;
  d.planned = plan::plan_experiment(experiment, context, read_data, stop);
  const plan::Request& r = d.planned.request;
  const auto use = r.work == plan::Work::train ? mesh::ShardingUse::training : mesh::ShardingUse::sampling;
  const model::TensorInventory inventory(r.model);
  d.placement = mesh::place(inventory, r.mesh, r.rules, adapters_of(experiment, r, inventory), use);
  d.layout = mesh::lay_out(r.mesh, r.target, r.places);
  const std::vector<plan::DeviceUse>& devices = d.plan().memory.devices;
  set_collectives(d, devices.size() > 1 ? engine_collectives(r, d.placement, devices.front().rows)
                                        : plan::step_collectives(r, r.model, d.placement,
                                                                 plan::step_shape(plan::local_model(r, use))));
  return d;
}

namespace {

// Distance on the plane between neighbours along an axis.
struct Stride {
  int column = 0, row = 0;
};

std::vector<Stride> strides(const mesh::Mesh& mesh, DeviceGrid& grid) {
  std::vector<Stride> out(mesh.axes.size());
  bool across = true;
  for (size_t i = mesh.axes.size(); i-- > 0;) {
    const int size = mesh.axes[i].size;
    if (size < 2) continue;
    int& extent = across ? grid.columns : grid.rows;
    (across ? out[i].column : out[i].row) = extent;
    extent *= size;
    across = !across;
  }
  return out;
}

std::string coordinate_text(const mesh::Mesh& mesh, const std::vector<int>& at) {
  std::string out;
  for (size_t i = 0; i < at.size(); ++i)
    if (mesh.axes[i].size > 1) out += (out.empty() ? "" : ", ") + mesh.axes[i].name + " " + std::to_string(at[i]);
  return out;
}

}  // namespace

DeviceGrid device_grid(const mesh::Mesh& mesh) {
  DeviceGrid grid;
  const auto stride = strides(mesh, grid);
  std::vector<int> step(mesh.axes.size(), 1);  // in devices, along each axis
  for (size_t i = mesh.axes.size(); i-- > 1;) step[i - 1] = step[i] * mesh.axes[i].size;
  for (int d = 0; d < mesh.devices(); ++d) {
    const auto at = mesh::coordinate(mesh, d);
    GridDevice device{.device = d, .name = coordinate_text(mesh, at)};
    for (size_t i = 0; i < at.size(); ++i) {
      device.column += at[i] * stride[i].column;
      device.row += at[i] * stride[i].row;
      if (at[i] + 1 < mesh.axes[i].size) grid.edges.push_back({d, d + step[i], static_cast<int>(i)});
    }
    grid.devices.push_back(std::move(device));
  }
  return grid;
}

}  // namespace mw::views
