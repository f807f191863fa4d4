// SPDX-License-Identifier: Apache-2.0
// Content of the Train page, built only from the events of a run, so that a live run and the same run reloaded from the
// store give equal views. Feed it on one thread from Mailbox::drain() or Store::events(). If a live mailbox dropped
// telemetry, build a new view from the store. A resumed run starts with another Started event whose info.resumed_from
// is the step to resume from; the view then rewinds like Store::rewind().
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/event.h"
#include "core/mesh/layout/mesh.h"
#include "core/store/store.h"
#include "core/views/series.h"
#include "core/views/traffic_timeline.h"

namespace mw::views {

// One metric over steps, raw and smoothed. A repeated step (of a resumed run) replaces all samples from that step on.
struct MetricSeries {
  Series raw;
  Smoothed smooth;
  bool operator==(const MetricSeries&) const = default;
};

struct MemoryPoint {
  double time_s = 0;
  long step = 0;
  std::string phase;  // load, forward, backward, optimizer, eval, generate
  Ledger bytes;
  Bytes peak;  // reported largest total since the start of the run
  bool operator==(const MemoryPoint&) const = default;
};

enum class Against { step, time };

// Memory of one device. Totals are series of bytes; sample i of both is points[i].
struct MemoryTimeline {
  std::vector<MemoryPoint> points;
  Series total_by_step, total_by_time;
  Bytes peak;             // largest total the device reported
  Ledger category_peaks;  // largest of each category, at different instants
  const Series& total(Against against) const { return against == Against::step ? total_by_step : total_by_time; }
  // Returns ascending indices into `points` for a stacked chart of `columns` pixels over [x0, x1]: per column the
  // points with the largest and the smallest total.
  std::vector<size_t> decimate(Against against, double x0, double x1, int columns) const {
    return total(against).decimate_indices(x0, x1, columns);
  }
  bool operator==(const MemoryTimeline&) const = default;
};

struct LogLine {
  double time_s = 0;
  long step = 0;  // latest training step at that time
  std::string level, text;
  bool operator==(const LogLine&) const = default;
};
struct SampleShown {
  double time_s = 0;
  long step = 0;
  std::string prompt, text, expected, verdict;
  bool operator==(const SampleShown&) const = default;
};
struct CheckpointMark {
  long step = 0;
  std::string path;
  bool operator==(const CheckpointMark&) const = default;
};

class RunView {
 public:
  explicit RunView(double smoothing = 0.9) : smoothing_(smoothing) {}
  void feed(const Event& event);
  void rewind(long step);  // drops everything after `step`

  // Returns the series by metric name ("train/loss", "eval/loss", "train/learning_rate" ...); null before its first
  // sample.
  const MetricSeries* metric(const std::string& name) const;
  const std::map<std::string, MetricSeries>& metrics() const { return metrics_; }
  double smoothing() const { return smoothing_; }
  void set_smoothing(double weight);  // recomputes every smoothed series

  const std::map<int, MemoryTimeline>& memory() const { return memory_; }                        // by device
  const TrafficTimeline& traffic() const { return traffic_; }                                    // empty on one device
  const std::vector<SampleShown>& samples() const { return samples_; }                           // in order of arrival
  std::vector<store::ScoredAnswers> answers() const { return store::scored_answers(samples_); }  // by step
  const std::vector<CheckpointMark>& checkpoints() const { return checkpoints_; }
  const std::vector<event::ResultPoint>& points() const {
    return points_;
  }                                                        // of a size run or sweep, in order of arrival
  const std::deque<LogLine>& log() const { return log_; }  // the last kLogLines lines
  std::size_t log_lines_dropped() const { return log_dropped_; }

  // The info of the Started event and values from it; empty before Started or if the source does not set them.
  const Json& info() const { return info_; }
  bool is_imported() const;  // made by another program
  std::string kind() const;  // info.kind, such as "size"; empty for training
  // Returns info.predicted: the predicted peak {category: bytes} of the fullest device, or of one device if recorded.
  std::optional<Ledger> predicted(std::optional<int> device = std::nullopt) const;
  mesh::Mesh ran_on() const;              // info.mesh {axes: [{name, size}]}; no axes if not set
  int devices() const;                    // info.devices, else the devices that reported memory, else 1
  std::optional<Bytes> capacity() const;  // info.capacity_bytes, per device

  RunState state() const { return state_; }
  bool ended() const { return finished_.has_value(); }
  bool is_resumable() const;  // stopped before its last step, by this program
  const std::optional<event::Finished>& finished() const { return finished_; }
  std::string error() const { return finished_ ? finished_->error : std::string(); }

  long step() const;                           // last step with a train/ metric or a point; 0 before the first
  long steps_total() const { return total_; }  // info.steps; 0 if unknown
  double fraction() const;                     // finished share of the steps, 0 to 1
  const std::optional<event::Progress>& activity() const { return activity_; }  // current activity ("load 3 of 20")
  double last_time() const { return last_time_; }                               // time_s of the last event
  // Returns the remaining seconds from last_time(), extrapolated from the last kRecent training steps, excluding pauses
  // but including evaluations, which will recur. Empty before two steps, after the end, or if the total is unknown. For
  // points, whose costs differ, it is extrapolated from the finished share of the work.
  std::optional<double> eta_seconds() const;
  std::optional<double> seconds_per_step() const;

  bool operator==(const RunView& other) const = default;

  static constexpr std::size_t kLogLines = 20000;
  static constexpr std::size_t kRecent = 64;

 private:
  struct StepTime {
    long step = 0;
    double active_s = 0;  // time_s without pauses
    bool operator==(const StepTime&) const = default;
  };
  void take(const event::Started& e);
  void take(const event::Metric& e);
  void take(const event::Memory& e);
  void take(const event::StepTraffic& e);
  void take(const event::Sample& e);
  void take(const event::Checkpoint& e);
  void take(const event::ResultPoint& e);
  void take(const event::Log& e);
  void take(const event::Progress& e);
  void take(const event::StateChanged& e);
  void take(const event::Finished& e);
  void count_step(long step);
  void change_state(RunState state);
  double active_time() const;

  double smoothing_;
  std::map<std::string, MetricSeries> metrics_;
  std::map<int, MemoryTimeline> memory_;
  TrafficTimeline traffic_;
  std::vector<SampleShown> samples_;
  std::vector<CheckpointMark> checkpoints_;
  std::vector<event::ResultPoint> points_;
  std::deque<LogLine> log_;
  std::size_t log_dropped_ = 0;
  Json info_;
  RunState state_ = RunState::queued;
  std::optional<event::Finished> finished_;
  std::optional<event::Progress> activity_;
  long total_ = 0;
  long furthest_ = 0;  // largest step of any event
  double last_time_ = 0, paused_s_ = 0;
  std::optional<double> paused_since_;
  std::deque<StepTime> recent_;
};

// Early stop and best checkpoint: "stopped early: ...; best checkpoint: ...". Empty if the run has neither.
std::string outcome_text(const event::Finished& finished);

// Feeds the events of a stored run to a view. Throws errors of the store, and cancelled() once `stop` is requested.
RunView read_run(const store::Store& store, const store::RunId& run, const std::stop_token& stop = {});

}  // namespace mw::views
