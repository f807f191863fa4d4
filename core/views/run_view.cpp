// SPDX-License-Identifier: Apache-2.0
#include "core/views/run_view.h"

#include <algorithm>
#include <cmath>

#include "core/base/json.h"
#include "core/base/text.h"

namespace mw::views {
namespace {

// Normalises an event as the store does: valid UTF-8, no NaN.
Json as_stored(const Json& json) {
  return Json::parse(dump_utf8(json));
}

std::optional<long> whole(const Json& info, const char* key) {
  const Json* at = find_member(info, key);
  return at && at->is_number_integer() ? std::optional(at->get<long>()) : std::nullopt;
}

bool is_training(const std::string& metric) {
  return metric.starts_with("train/");
}

template <class Items>
void drop_after(Items& items, long step) {
  std::erase_if(items, [step](const auto& item) { return item.step > step; });
}

void widen_peaks(MemoryTimeline& timeline, const MemoryPoint& point) {
  timeline.peak = std::max({timeline.peak, point.peak, point.bytes.total()});
  for (size_t i = 0; i < kMemoryCategories; ++i)
    timeline.category_peaks.bytes[i] = std::max(timeline.category_peaks.bytes[i], point.bytes.bytes[i]);
}

void append_point(MemoryTimeline& timeline, MemoryPoint point) {
  const auto total = static_cast<double>(point.bytes.total().value);
  timeline.total_by_step.append(static_cast<double>(point.step), total);
  timeline.total_by_time.append(point.time_s, total);
  widen_peaks(timeline, point);
  timeline.points.push_back(std::move(point));
}

void drop_after(MemoryTimeline& timeline, long step) {
  std::vector<MemoryPoint> kept = std::move(timeline.points);
  drop_after(kept, step);
  timeline = {};
  for (MemoryPoint& point : kept) append_point(timeline, std::move(point));
}

// Recorded as the store does, so that a live and a reloaded view agree.
event::Finished as_stored(event::Finished e) {
  e.error = valid_utf8(e.error);
  e.summary = as_stored(e.summary);
  return e;
}

}  // namespace

void RunView::feed(const Event& event) {
  last_time_ = std::isfinite(event.time_s) ? event.time_s : 0;
  std::visit(
      [this](const auto& e) {
        take(e);
        if constexpr (requires { e.step; }) furthest_ = std::max(furthest_, e.step);
      },
      event.body);
}

void RunView::take(const event::Started& e) {
  info_ = as_stored(e.info);
  total_ = std::max(0L, whole(info_, "steps").value_or(0));
  if (const auto from = whole(info_, "resumed_from")) rewind(*from);
  recent_.clear();  // times and speed of the resumed process differ
  paused_since_.reset();
  paused_s_ = 0;
  activity_.reset();
  finished_.reset();
  state_ = RunState::running;
}

void RunView::take(const event::Metric& e) {
  auto at = metrics_.find(e.name);  // the names of metrics_ are valid UTF-8
  if (at == metrics_.end()) at = metrics_.try_emplace(valid_utf8(e.name), MetricSeries{{}, Smoothed(smoothing_)}).first;
  MetricSeries& m = at->second;
  const auto x = static_cast<double>(e.step);
  if (!m.raw.empty() && x <= m.raw.back().x) {
    m.raw.truncate_from(x);
    m.smooth.set_weight(smoothing_, m.raw);
  }
  m.raw.append(x, e.value);
  m.smooth.follow(m.raw);
  if (is_training(at->first)) count_step(e.step);
}

void RunView::count_step(long step) {
  while (!recent_.empty() && recent_.back().step > step) recent_.pop_back();
  if (!recent_.empty() && recent_.back().step == step) return;
  recent_.push_back({step, active_time()});
  if (recent_.size() > kRecent + 1) recent_.pop_front();
}

void RunView::take(const event::Memory& e) {
  append_point(memory_[e.device], {last_time_, e.step, valid_utf8(e.phase), e.bytes, e.peak});
}

void RunView::take(const event::StepTraffic& e) {
  traffic_.append(last_time_, e);
}

void RunView::take(const event::Sample& e) {
  samples_.push_back(
      {last_time_, e.step, valid_utf8(e.prompt), valid_utf8(e.text), valid_utf8(e.expected), valid_utf8(e.verdict)});
}

void RunView::take(const event::Checkpoint& e) {
  checkpoints_.push_back({e.step, valid_utf8(e.path)});
}

void RunView::take(const event::ResultPoint& e) {
  points_.push_back({e.step, valid_utf8(e.kind), as_stored(e.values)});
}

void RunView::take(const event::Log& e) {
  log_.push_back({last_time_, furthest_, valid_utf8(e.level), valid_utf8(e.text)});
  if (log_.size() > kLogLines) {
    log_.pop_front();
    ++log_dropped_;
  }
}

void RunView::take(const event::Progress& e) {
  if (e.phase.empty() && e.total <= 0) return activity_.reset();  // the activity has ended
  activity_ = e;
  activity_->phase = valid_utf8(e.phase);
}

void RunView::take(const event::StateChanged& e) {
  change_state(e.state);
  if (e.state == RunState::running) finished_.reset();  // the run was resumed
}

void RunView::take(const event::Finished& e) {
  change_state(e.state);
  finished_ = as_stored(e);
  activity_.reset();
}

void RunView::change_state(RunState state) {
  if (state == RunState::paused && !paused_since_) paused_since_ = last_time_;
  if (state != RunState::paused && paused_since_) {
    paused_s_ += std::max(0.0, last_time_ - *paused_since_);
    paused_since_.reset();
  }
  state_ = state;
}

void RunView::rewind(long step) {
  const auto after = static_cast<double>(step) + 0.5;
  for (auto& [name, m] : metrics_)
    if (!m.raw.empty() && m.raw.back().x > after) {
      m.raw.truncate_from(after);
      m.smooth.set_weight(smoothing_, m.raw);
    }
  std::erase_if(metrics_, [](const auto& metric) { return metric.second.raw.empty(); });
  for (auto& [device, timeline] : memory_) drop_after(timeline, step);
  std::erase_if(memory_, [](const auto& memory) { return memory.second.points.empty(); });
  traffic_.drop_after(step);
  drop_after(samples_, step);
  drop_after(checkpoints_, step);
  drop_after(points_, step);
  drop_after(log_, step);
  furthest_ = std::min(furthest_, step);
  recent_.clear();
  finished_.reset();
  activity_.reset();
}

double RunView::active_time() const {
  return last_time_ - paused_s_ - (paused_since_ ? std::max(0.0, last_time_ - *paused_since_) : 0.0);
}

const MetricSeries* RunView::metric(const std::string& name) const {
  const auto at = metrics_.find(name);
  return at == metrics_.end() ? nullptr : &at->second;
}

void RunView::set_smoothing(double weight) {
  smoothing_ = weight;
  for (auto& [name, m] : metrics_) m.smooth.set_weight(weight, m.raw);
}

std::string RunView::kind() const {
  const Json* kind = find_member(info_, "kind");
  return kind && kind->is_string() ? kind->get<std::string>() : std::string();
}

std::optional<Ledger> RunView::predicted(std::optional<int> device) const {
  const Json* predicted = find_member(info_, "predicted");
  if (!predicted || !predicted->is_object()) return std::nullopt;
  if (const Json* each = find_member(*predicted, "devices"); device && each && each->is_array())
    if (*device >= 0 && static_cast<size_t>(*device) < each->size())
      predicted = &each->at(static_cast<size_t>(*device));
  try {
    return ledger_from_json(*predicted);
  } catch (const Error&) {  // an external job may use another format
    return std::nullopt;
  }
}

mesh::Mesh RunView::ran_on() const {
  constexpr long kMost = 4096;
  mesh::Mesh out;
  const Json* mesh = find_member(info_, "mesh");
  const Json* axes = mesh ? find_member(*mesh, "axes") : nullptr;
  if (!axes || !axes->is_array()) return out;
  for (const Json& axis : *axes) {
    const Json* name = find_member(axis, "name");
    const auto size = whole(axis, "size");
    if (!name || !name->is_string() || !size || *size < 1 || *size > kMost) return {};
    out.axes.push_back({name->get<std::string>(), static_cast<int>(*size)});
  }
  return out.devices() <= kMost ? out : mesh::Mesh{};
}

int RunView::devices() const {
  const long stated = whole(info_, "devices").value_or(1);
  const long reported = memory_.empty() ? 1 : static_cast<long>(memory_.size());
  return static_cast<int>(std::clamp(std::max(stated, reported), 1L, 1L << 20));
}

std::optional<Bytes> RunView::capacity() const {
  const auto bytes = whole(info_, "capacity_bytes");
  return bytes && *bytes > 0 ? std::optional(Bytes(*bytes)) : std::nullopt;
}

bool RunView::is_imported() const {
  const Json* source = find_member(info_, "source");
  return source && *source == "imported";
}

bool RunView::is_resumable() const {
  const auto spent = [this] { return finished_->summary.is_object() && finished_->summary.contains("budget"); };
  if (!ended() || (state_ != RunState::cancelled && state_ != RunState::failed && !spent())) return false;
  return !is_imported() && (total_ == 0 || step() < total_);
}

long RunView::step() const {
  double last = points_.empty() ? 0 : static_cast<double>(points_.back().step);
  for (const auto& [name, m] : metrics_)
    if (is_training(name) && !m.raw.empty()) last = std::max(last, m.raw.back().x);
  return static_cast<long>(std::min(last, 0x1p53));  // largest exact integer of a double
}

double RunView::fraction() const {
  if (finished_ && finished_->state == RunState::done) return 1;
  return total_ > 0 ? std::clamp(static_cast<double>(step()) / static_cast<double>(total_), 0.0, 1.0) : 0;
}

std::optional<double> RunView::seconds_per_step() const {
  if (recent_.size() < 2 || recent_.back().step <= recent_.front().step) return std::nullopt;
  const double seconds = recent_.back().active_s - recent_.front().active_s;
  return std::max(0.0, seconds) / static_cast<double>(recent_.back().step - recent_.front().step);
}

std::optional<double> RunView::eta_seconds() const {
  if (!points_.empty()) {
    if (ended() || !activity_ || activity_->done <= 0 || activity_->total <= activity_->done) return std::nullopt;
    return active_time() * static_cast<double>(activity_->total - activity_->done) /
           static_cast<double>(activity_->done);
  }
  const auto each = seconds_per_step();
  if (!each || ended() || total_ <= 0) return std::nullopt;
  return *each * static_cast<double>(std::max(0L, total_ - step()));
}

std::string outcome_text(const event::Finished& finished) {
  const auto number = [](const Json& from, const char* key) {
    const Json* value = find_member(from, key);
    return value && value->is_number() ? number_text(value->get<double>()) : std::string("?");
  };
  const auto metric = [](const Json& from) {
    const Json* name = find_member(from, "metric");
    return name && name->is_string() ? name->get<std::string>() : std::string("metric");
  };
  std::vector<std::string> parts;
  if (const Json* stop = find_member(finished.summary, "early_stop"))
    parts.push_back("stopped early: no better " + metric(*stop) + " in " + number(*stop, "patience") +
                    " evaluations since step " + number(*stop, "best_step"));
  if (const Json* best = find_member(finished.summary, "best"))
    parts.push_back("best checkpoint: step " + number(*best, "step") + ", " + metric(*best) + " " +
                    number(*best, "value"));
  return joined(parts, "; ");
}

RunView read_run(const store::Store& store, const store::RunId& run, const std::stop_token& stop) {
  RunView view;
  store.read_events(run, [&](const store::StoredEvent& stored) {
    if (stop.stop_requested()) throw cancelled("opening of " + run);
    view.feed(stored.event);
  });
  return view;
}

}  // namespace mw::views
