// SPDX-License-Identifier: Apache-2.0
#include "core/views/size_view.h"

#include <algorithm>
#include <cmath>

namespace mw::views {
namespace {

constexpr double kMostTokens = 9e15;  // doubles are exact up to 2^53

[[noreturn]] void refuse(const char* place, const char* expected) {
  throw Error("POINT", "invalid point of a size run", {.place = place, .expected = expected});
}

const Json& part(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) refuse(key, "a value");
  return object[key];
}

double number(const Json& object, const char* key) {
  const Json& value = part(object, key);
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0)
    refuse(key, "a number of zero or more");
  return value.get<double>();
}

std::int64_t whole_number(const Json& object, const char* key, double most = kMostTokens) {
  const double value = number(object, key);
  if (value > most || value != std::floor(value)) refuse(key, "a whole number");
  return static_cast<std::int64_t>(value);
}

std::optional<options::Workload> workload_named(const Json& name) {
  return name.is_string() ? parse<options::Workload>(name.get_ref<const std::string&>()) : std::nullopt;
}

serve::MeasuredSize::Measured measured(const Json& j) {
  serve::MeasuredSize::Measured m;
  m.seconds = number(j, "seconds");
  m.tokens = whole_number(j, "tokens");
  if (m.tokens == 0) refuse("tokens", "one or more");
  m.repeats = static_cast<int>(whole_number(j, "repeats", 1e6));
  if (j.contains("prefill_seconds")) m.prefill_seconds = number(j, "prefill_seconds");
  if (j.contains("step_seconds")) m.step_seconds = number(j, "step_seconds");
  m.memory = ledger_from_json(part(j, "memory"));
  return m;
}

serve::MeasuredSize::PredictedTime predicted_time(const Json& j) {
  serve::MeasuredSize::PredictedTime t;
  t.seconds = number(j, "seconds");
  t.low = number(j, "seconds_low");
  t.high = number(j, "seconds_high");
  t.tokens = whole_number(j, "tokens");
  if (t.tokens == 0) refuse("tokens", "one or more");
  const Json& origin = part(j, "origin");
  const auto known = origin.is_string() ? parse<plan::Origin>(origin.get_ref<const std::string&>()) : std::nullopt;
  if (!known) refuse("origin", "measured, interpolated, transferred or floor");
  t.origin = *known;
  return t;
}

SizeView::Line& line_of(SizeView& view, options::Workload workload, bool adapters) {
  for (auto& line : view.lines)
    if (line.workload == workload && line.adapters == adapters) return line;
  view.lines.push_back({workload, adapters});
  return view.lines.back();
}

void widen(Ledger& most, const Ledger& other) {
  for (size_t c = 0; c < kMemoryCategories; ++c) most.bytes[c] = std::max(most.bytes[c], other.bytes[c]);
}

void add(SizeView& view, serve::MeasuredSize point) {
  auto& points = line_of(view, point.workload, point.adapters).points;
  const auto at = std::lower_bound(points.begin(), points.end(), point.batch,
                                   [](const serve::MeasuredSize& p, int batch) { return p.batch < batch; });
  view.batches.push_back(point.batch);
  if (!view.capacity) view.capacity = point.capacity;
  if (!point.fits()) view.largest_refused = std::max(view.largest_refused, point.predicted.total());
  if (point.measured) {
    view.highest = std::max(view.highest, point.measured->memory.total());
    widen(view.category_most, point.measured->memory);
  } else {
    if (point.predicted_time) view.highest = std::max(view.highest, point.predicted.total());
    widen(view.category_most, point.predicted);
  }
  if (at != points.end() && at->batch == point.batch)
    *at = std::move(point);  // measured again
  else
    points.insert(at, std::move(point));
}

// Reads the planned workloads and batches, so that charts have axes before the first point.
void add_plan(SizeView& view, const Json& info) {
  if (!info.is_object()) return;
  const auto text_of = [](const Json& object, const char* key) {
    const auto value = object.is_object() ? object.find(key) : object.end();
    return value != object.end() && value->is_string() ? value->get<std::string>() : std::string();
  };
  const auto is_set = [&info](const char* key) {
    const auto value = info.find(key);
    return value != info.end() && value->is_boolean() && value->get<bool>();
  };
  view.is_predicted = text_of(info, "source") == "predicted";
  if (view.is_predicted && info.contains("device")) view.target = text_of(info["device"], "id");
  if (const auto workloads = info.find("workloads"); workloads != info.end() && workloads->is_array())
    for (const Json& name : *workloads)
      if (const auto workload = workload_named(name)) line_of(view, *workload, is_set("adapters"));
  if (const auto batches = info.find("batches"); batches != info.end() && batches->is_array())
    for (const Json& batch : *batches)
      if (batch.is_number_integer() && batch.get<std::int64_t>() > 0 && batch.get<std::int64_t>() < 1 << 30)
        view.batches.push_back(batch.get<int>());
}

}  // namespace

serve::MeasuredSize size_point(const Json& values) {
  const auto workload = workload_named(part(values, "mode"));
  if (!workload) refuse("mode", "rollout, forward or chunked_forward");
  const auto batch = whole_number(values, "batch", 1 << 30);
  if (batch == 0) refuse("batch", "one or more");
  const Json& predicted = part(values, "predicted");
  serve::MeasuredSize point{.workload = *workload,
                            .batch = static_cast<int>(batch),
                            .predicted = ledger_from_json(part(predicted, "memory")),
                            .capacity = Bytes(whole_number(predicted, "capacity_bytes")),
                            .largest_batch = 0,
                            .measured = std::nullopt,
                            .error = {}};
  if (predicted.contains("largest_batch"))
    point.largest_batch = static_cast<int>(whole_number(predicted, "largest_batch", 1 << 30));
  if (const auto adapters = values.find("adapters"); adapters != values.end()) {  // version 0.1 did not record it
    if (!adapters->is_boolean()) refuse("adapters", "true or false");
    point.adapters = adapters->get<bool>();
  }
  if (predicted.contains("seconds")) point.predicted_time = predicted_time(predicted);
  if (const Json& m = part(values, "measured"); !m.is_null()) point.measured = measured(m);
  if (const auto error = values.find("error"); error != values.end() && error->is_string())
    point.error = error->get<std::string>();
  return point;
}

bool SizeView::empty() const {
  return std::all_of(lines.begin(), lines.end(), [](const Line& l) { return l.points.empty(); });
}

bool SizeView::has_both() const {
  const auto has = [this](bool adapters) {
    return std::any_of(lines.begin(), lines.end(), [adapters](const Line& l) { return l.adapters == adapters; });
  };
  return has(false) && has(true);
}

const SizeView::Line* SizeView::find(options::Workload workload, bool adapters) const {
  for (const Line& line : lines)
    if (line.workload == workload && line.adapters == adapters) return &line;
  return nullptr;
}

SizeView size_view(const RunView& run) {
  SizeView view;
  view.capacity = run.capacity();
  add_plan(view, run.info());
  for (const event::ResultPoint& point : run.points()) {
    if (point.kind != "size") continue;
    try {
      add(view, size_point(point.values));
    } catch (const Error&) {  // from another version or program; other points are still valid
      ++view.ignored;
    }
  }
  std::sort(view.batches.begin(), view.batches.end());
  view.batches.erase(std::unique(view.batches.begin(), view.batches.end()), view.batches.end());
  return view;
}

}  // namespace mw::views
