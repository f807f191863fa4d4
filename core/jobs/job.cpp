// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/job.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/event.h"
#include "core/base/files.h"
#include "core/base/processor_time.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/jobs/out_of_memory.h"
#include "core/jobs/size_run.h"
#include "core/jobs/training_curves.h"
#include "core/mesh/layout/sharding_options.h"
#include "core/plan/document/engine_request.h"
#include "core/plan/document/plan_request.h"
#include "core/plan/experiment/experiment_plan.h"
#include "core/plan/experiment/predict_sizes.h"
#include "core/plan/prediction/memory.h"
#include "core/plan/prediction/serve_step.h"
#include "core/serve/load/sweep.h"
#include "core/store/store_rows.h"
#include "core/train/checkpoint.h"
#include "core/train/settings.h"
#include "core/train/trainer.h"

namespace mw::jobs {
namespace {

using Clock = std::chrono::steady_clock;

// State of a run while it is recorded: store, lock, id.
struct Record {
  explicit Record(const JobRequest& request)
      : store(request.runs_folder),
        experiment(request.experiment),
        context(request.context),
        hardware_folder(request.hardware_folder) {}
  store::Store store;
  std::unique_ptr<store::RunLock> lock;
  store::RunId run;
  experiment::Experiment experiment;
  std::optional<std::filesystem::path> checkpoint;
  std::optional<long> total_steps;          // of a resumed training run
  std::vector<Bytes> peaks;                 // of each device up to the checkpoint
  std::vector<formats::BenchPoint> points;  // of a resumed sweep
  plan::LoadContext context;
  std::filesystem::path hardware_folder;
  std::vector<double> speeds;                   // tokens per second of the steps here, but the first, which warms up
  std::vector<formats::TimedStep> steps;        // of a sweep here
  std::optional<plan::MeasuredRun> measured;    // as far as it is known before the first step
  ProcessorTime processors = processor_time();  // before its work
  double planned_speed = 0;                     // tokens per second of the training without corrections by earlier runs
};

experiment::Kind kind_of(const experiment::Experiment& e) {
  return e.valid_values().kind;
}

std::string run_name(const experiment::Experiment& e) {
  const experiment::BoundExperiment config = e.valid_values();
  if (!config.name.empty()) return config.name;
  const std::string folder = config.model.path.filename().string();
  const std::string model = folder.empty() ? config.model.id : folder;
  if (config.kind == experiment::Kind::size)
    return model + (are_sizes_predicted(config) ? " sizes on " + config.target.id : " sizes");
  if (config.kind == experiment::Kind::serve) return model + " sweep on " + config.target.id;
  return (folder.empty() ? "run" : folder) +
         (config.train.method == model::TrainMethod::lora ? " LoRA r" + std::to_string(config.lora.rank) : " full");
}

[[noreturn]] void refuse_sets(const std::string& set) {
  throw Error("RESUME-SET", "a resumed sweep cannot change its experiment",
              {.place = set.substr(0, set.find('=')), .fix = "remove the option, or start a new sweep"});
}

// A resumed sweep keeps its experiment, but sweep.url may be set again with the credentials, which are not recorded.
void reconnect(experiment::Experiment& experiment, const std::vector<std::string>& sets) {
  constexpr std::string_view kUrl = "sweep.url=";
  const std::string url = experiment.valid_values().sweep.url;
  for (const std::string& set : sets)
    if (!set.starts_with(kUrl) || without_url_secrets(set.substr(kUrl.size())) != url) refuse_sets(set);
  experiment::apply_sets(experiment, sets);
}

void check(const Record& record) {
  const experiment::BoundExperiment config = record.experiment.config();
  switch (config.kind) {
    case experiment::Kind::size:
      if (are_sizes_predicted(config)) {
        plan::predicted_sizes(record.experiment, *record.context());
        break;
      }
      sizing_settings(config);
      train::require_weights(train::model_values(config));
      break;
    case experiment::Kind::serve:
      serve::sweep_settings(config);
      if (serve::sweep_backend(config) == options::SweepBackend::engine)
        train::require_weights(train::model_values(config));
      break;
    case experiment::Kind::train:
      train::require_weights(train::train_settings(config).model);
  }
}

// Reads the recorded points of a resumed sweep and their number.
long read_points(Record& record) {
  std::vector<event::ResultPoint> points;
  record.store.read_events(record.run, [&](const store::StoredEvent& stored) {
    if (const auto* p = std::get_if<event::ResultPoint>(&stored.event.body)) points.push_back(*p);
  });
  record.points = store::points_of(points);
  return static_cast<long>(record.points.size());
}

// A resumed run may change where it is computed, but not what it computes.
void move_to(experiment::Experiment& experiment, const std::vector<std::string>& sets) {
  for (const std::string& set : sets) {
    const auto is_of = [&](const char* section) { return set.starts_with(section); };
    if (!is_of("mesh.") && !is_of("sharding.") && !is_of("target.") && !is_of("budget."))
      throw Error(
          "RESUME-SET", "a resumed run cannot change this key",
          {.place = set.substr(0, set.find('=')),
           .expected =
               "mesh.*, sharding.*, target.* or budget.*, because a run may resume on other devices, or for longer",
           .fix = "remove the option, or start a new run from the checkpoint's adapter (lora.adapter)"});
  }
  experiment::apply_sets(experiment, sets);
  train::train_settings(experiment.config());
}

// Records a checkpoint that was written but not recorded because the process was killed in between.
void rewind_to_checkpoint(Record& record) {
  record.checkpoint = train::latest_checkpoint(record.store.run_folder(record.run));
  const train::TrainingCounters at =
      record.checkpoint ? train::read_counters(*record.checkpoint) : train::TrainingCounters{};
  if (record.store.rewind(record.run, at.step)) return;
  record.store.append(record.run, {at.seconds, event::Checkpoint{at.step, record.checkpoint->string()}});
}

// Returns the peak memory of each device recorded before the resume.
std::vector<Bytes> peaks_so_far(const Record& record) {
  std::vector<Bytes> peaks;
  record.store.read_events(record.run, [&](const store::StoredEvent& stored) {
    const auto* m = std::get_if<event::Memory>(&stored.event.body);
    if (!m || m->device < 0) return;
    const auto device = static_cast<size_t>(m->device);
    if (peaks.size() <= device) peaks.resize(device + 1);
    peaks[device] = std::max(peaks[device], m->peak);
  });
  return peaks;
}

std::unique_ptr<Record> open_record(const JobRequest& request) {
  auto record = std::make_unique<Record>(request);
  if (request.resume) {
    record->run = *request.resume;
    if (!record->store.find(record->run))
      throw Error(
          "RUN", "the run does not exist",
          {.file = request.runs_folder.string(), .place = record->run, .fix = "see `meshwright runs` for the ids"});
    record->lock = record->store.lock(record->run);
    record->experiment = record->store.experiment(record->run);
    if (kind_of(record->experiment) == experiment::Kind::size)
      throw Error("RUN", "a size run has no checkpoints to resume from",
                  {.place = record->run, .fix = "start a new size run; the points measured so far stay in the record"});
    if (kind_of(record->experiment) == experiment::Kind::serve) {
      reconnect(record->experiment, request.resume_sets);
      record->store.rewind(record->run, read_points(*record));
    } else {
      move_to(record->experiment, request.resume_sets);
      if (const long total = record->store.find(record->run)->steps_total; total > 0) record->total_steps = total;
      rewind_to_checkpoint(*record);
      if (request.resume_sets.empty()) record->peaks = peaks_so_far(*record);
    }
  } else {
    check(*record);  // rejects bad input before a run is created
    record->run = record->store.create(record->experiment, run_name(record->experiment));
    record->lock = record->store.lock(record->run);
  }
  if (request.on_run) request.on_run(record->run);
  return record;
}

event::Finished failed(const Error& error, double seconds) {
  event::Finished f;
  f.state = error.kind() == Error::Kind::cancelled ? RunState::cancelled : RunState::failed;
  f.seconds = seconds;
  f.error = f.state == RunState::cancelled ? "" : error.what();
  return f;
}

// Returns the folder of the next checkpoint. Commits all earlier events first, because a run that is killed right after
// the checkpoint resumes after them.
std::filesystem::path checkpoint_folder(Record& record) {
  record.store.flush();
  std::filesystem::path folder = record.store.run_folder(record.run);
  if (!is_folder(folder)) record.lock = record.store.lock(record.run);  // the folder was deleted together with the lock
  return folder;
}

// Null: not given, or its files cannot be read, and a run has no predicted times.
plan::PlanContextPtr context_of(const Record& record) try {
  return record.context ? record.context() : nullptr;
} catch (const Error&) {
  return nullptr;
}

// Plans the time of the training with the rates in force but those of earlier runs.
void plan_speed(Record& record, const train::DataFacts& facts) try {
  const plan::PlanContextPtr context = record.hardware_folder.empty() ? nullptr : context_of(record);
  if (!context || kind_of(record.experiment) != experiment::Kind::train) return;
  plan::PlanContext basis = *context;
  basis.machine.runs.clear();
  plan::Request request = plan::plan_request(record.experiment, basis);
  plan::set_rows(facts, "its data", request);
  record.planned_speed = plan::predict(request).run.tokens_per_second;
  record.measured = plan::measured_run(record.experiment.config(), basis, request);
} catch (const Error&) {  // no plan, no comparison
}

// A recorded step for the planner's model. Only sums over the layers are recorded: those that see everything, or all
// where none does, stand for them. Several prompts in a step count as one.
plan::StepLoad step_load(const formats::ServingStepWork& w, const model::Config& config) {
  const auto slides = [&](const model::Layer& l) {
    return l.attention == model::Attention::sliding && config.sliding_window > 0;
  };
  const bool all_slide = std::all_of(config.layers.begin(), config.layers.end(), slides);
  double floats = 0, width = 0;  // of a token in the cache, of a query
  for (const model::Layer& l : config.layers)
    if (slides(l) == all_slide) floats += 2.0 * l.kv_heads * l.head_dim, width += 1.0 * l.heads * l.head_dim;
  const int prompts = w.pairs > 0 ? 1 : 0;
  plan::StepLoad load{.decoding = static_cast<int>(std::lround(w.requests)) - prompts, .prefilling = prompts};
  if (prompts > 0) load.prefill_tokens = std::llround(w.tokens) - load.decoding;
  (all_slide ? load.prefill_window_pairs : load.prefill_pairs) = w.pairs / width;
  (all_slide ? load.read_window_tokens : load.read_tokens) = w.read / floats;
  return load;
}

// How the steps of a run compare with its plan.
struct StepComparison {
  double factor = 1, spread = 0;  // MeasuredRun::factor, spread
};

// Of a sweep of the engine: the sum of its steps, and their spread by the time that they took.
std::optional<StepComparison> compare_sweep(Record& record) try {
  constexpr double kLeastSteps = 50;
  const plan::PlanContextPtr context = context_of(record);
  const experiment::BoundExperiment config = record.experiment.config();
  if (!context || serve::sweep_backend(config) != options::SweepBackend::engine || !config.serve.adapters.empty())
    return std::nullopt;
  plan::PlanContext basis = *context;
  basis.machine.runs.clear();
  const plan::Request request = plan::plan_request(record.experiment, basis);
  record.measured = plan::measured_run(config, basis, request);
  const plan::ServeStepModel model(request);
  double count = 0, measured = 0, planned = 0;
  std::vector<std::pair<double, double>> factors;
  for (const formats::TimedStep& s : record.steps) {
    const double own = model.seconds(step_load(s.work, request.model));
    count += s.count;
    measured += s.count * s.seconds;
    planned += s.count * own;
    factors.emplace_back(s.seconds / own, s.count * s.seconds);
  }
  if (count < kLeastSteps || planned <= 0) return std::nullopt;
  return StepComparison{measured / planned, plan::spread_of(std::move(factors), measured / planned)};
} catch (const Error&) {
  return std::nullopt;
}

std::optional<StepComparison> compare_training(const Record& record) {
  constexpr size_t kLeastSteps = 5;  // for a median
  if (record.planned_speed <= 0 || record.speeds.size() < kLeastSteps) return std::nullopt;
  const double median = formats::percentile_of(record.speeds, 50);
  std::vector<std::pair<double, double>> seconds;  // of a token
  for (const double speed : record.speeds) seconds.emplace_back(1 / speed, 1);
  return StepComparison{record.planned_speed / median, plan::spread_of(std::move(seconds), 1 / median)};
}

// Keeps how a run that took its steps here compares with its plan, unless they are too uneven. A stopped one counts,
// too.
void keep_speed(Record& record, double time_s, const EventSink& sink) {
  if (record.hardware_folder.empty()) return;
  const bool serves = kind_of(record.experiment) == experiment::Kind::serve;
  const std::optional<StepComparison> steps = serves ? compare_sweep(record) : compare_training(record);
  if (!steps || !record.measured) return;
  plan::MeasuredRun run = *record.measured;
  run.factor = steps->factor;
  run.spread = std::max(steps->spread, share_of_others(record.processors, processor_time()));
  run.date = store::today_utc();
  run.run = record.run;
  try {
    if (const std::string kept = plan::save_measured_run(record.hardware_folder, run); !kept.empty())
      sink({time_s, event::Log{"info", kept}});
  } catch (const Error& error) {
    sink({time_s,
          event::Log{"warning", "plans of this machine do not follow from this run: " + to_text(error.problem())}});
  }
}

event::Finished run_training(Record& record, Json info, const EventSink& sink, std::stop_token stop,
                             train::PauseGate& gate) {
  // For readers of the event lines (import_files.h).
  info.update({{"software", "Meshwright"},
               {"versions", {{"Meshwright", MW_VERSION}}},
               {"experiment", record.experiment.json()}});
  train::TrainRequest request{.settings = train::train_settings(record.experiment.config()),
                              .run_folder = [&] { return checkpoint_folder(record); },
                              .resume = record.checkpoint,
                              .total_steps = record.total_steps,
                              .peaks = record.peaks,
                              .info = std::move(info),
                              .predict = {}};
  request.predict = [&](const train::DataFacts& facts) {
    plan::Request planned = plan::engine_request(request.settings, facts.config);
    plan::set_rows(facts, "its data", planned);
    plan_speed(record, facts);
    return plan::memory_json(plan::engine_memory(planned));
  };
  for (const Problem& p : mesh::find_unused_axes(request.settings.model.mesh, request.settings.model.rules))
    sink({0, event::Log{to_string(p.severity), to_text(p)}});
  return train::train(request, sink, stop, gate);
}

event::Finished run_kind(Record& record, const Json& info, const EventSink& sink, std::stop_token stop,
                         train::PauseGate& gate) {
  switch (kind_of(record.experiment)) {
    case experiment::Kind::size:
      if (are_sizes_predicted(record.experiment.config()))
        return run_predicted_sizes(record.experiment, *record.context(), info, sink, stop);
      return run_sizes(record.experiment, context_of(record).get(), info, sink, std::move(stop), gate);
    case experiment::Kind::serve:
      return run_sweep({record.experiment, info, record.points, record.context}, sink, std::move(stop), gate);
    case experiment::Kind::train:
      break;
  }
  return run_training(record, info, sink, std::move(stop), gate);
}

MemoryReport memory_report(const engine::OutOfMemory& failure, const Record& record, const std::stop_token& stop) {
  return report_of(failure, record.experiment, context_of(record).get(), stop);
}

// train.tensorboard/RUN of a training run, else empty.
std::filesystem::path curves_folder(const Record& record) {
  const experiment::BoundExperiment config = record.experiment.valid_values();
  if (config.kind != experiment::Kind::train || config.train.tensorboard.empty()) return {};
  return config.train.tensorboard / record.run;
}

// Executes and records the run. Every outcome becomes a Finished event, except a failure of the store itself.
store::RunOutcome execute(Record& record, const EventSink& sink, std::stop_token stop, train::PauseGate& gate) {
  const auto start_time = Clock::now();
  double last_time = 0;
  long steps = 0;
  Bytes peak;
  bool is_warm = false;
  TrainingCurves curves(curves_folder(record));
  const EventSink both = [&](const Event& e) {
    last_time = e.time_s;
    if (const auto* m = std::get_if<event::Memory>(&e.body)) peak = std::max(peak, m->peak);
    if (const auto* m = std::get_if<event::Metric>(&e.body)) {
      steps = std::max(steps, m->step);
      if (m->name == "train/tokens_per_second" && std::exchange(is_warm, true)) record.speeds.push_back(m->value);
    }
    if (const auto* p = std::get_if<event::ResultPoint>(&e.body)) {
      steps = std::max(steps, p->step);
      for (const formats::BenchPoint& point : store::points_of({*p}))
        record.steps.insert(record.steps.end(), point.steps.begin(), point.steps.end());
    }
    record.store.append(record.run, e);
    sink(e);
    for (const auto& notice : {record.store.rescue_notice(e.time_s), curves.feed(e)})
      if (notice) {
        record.store.append(record.run, *notice);
        sink(*notice);
      }
  };
  ProgressLimit limit(both);
  event::Finished finished;
  std::optional<Error::Kind> kind;
  try {
    const Json info{{"name", run_name(record.experiment)}, {"run", record.run}};
    finished = run_kind(
        record, info, [&](const Event& e) { limit(e); }, stop, gate);
    keep_speed(record, finished.seconds, both);
  } catch (const engine::OutOfMemory& failure) {
    const MemoryReport report = memory_report(failure, record, stop);
    kind = report.error.kind();
    finished = failed(report.error, seconds_since(start_time));
    finished.steps = steps;
    finished.peak = peak;
    finished.summary = report.summary;
  } catch (const Error& error) {
    kind = error.kind();
    finished = failed(error, std::max(last_time, seconds_since(start_time)));
    finished.steps = steps;
  } catch (const std::exception& error) {
    kind = Error::Kind::failed;
    finished = failed(Error("INTERNAL", error.what(), {}, Error::Kind::failed), last_time);
    finished.steps = steps;
  }
  limit.end_phase();
  if (!finished.error.empty()) both({finished.seconds, event::Log{"error", finished.error}});
  const double seconds = finished.seconds;
  finished = record.store.finish(record.run, seconds, std::move(finished));
  if (record.store.rescue()) kind = Error::Kind::failed;
  sink({finished.seconds, finished});
  return {finished, kind};
}

}  // namespace

struct Job::Impl {
  train::PauseGate gate;
  mutable std::mutex mutex;
  store::RunId run;
  std::atomic<bool> finished{false};
  std::jthread thread;
};

Job::Job(JobRequest request, EventSink sink) : impl_(std::make_unique<Impl>()) {
  impl_->thread =
      std::jthread([impl = impl_.get(), request = std::move(request), sink = std::move(sink)](std::stop_token stop) {
        try {
          const auto record = open_record(request);
          {
            const std::lock_guard lock(impl->mutex);
            impl->run = record->run;
          }
          execute(*record, sink, stop, impl->gate);
        } catch (const Error& error) {
          sink({0, failed(error, 0)});
        } catch (const std::exception& error) {
          sink({0, failed(Error("INTERNAL", error.what(), {}, Error::Kind::failed), 0)});
        }
        impl->finished = true;
      });
}

Job::~Job() {
  stop();
  wait();
}

void Job::pause() {
  impl_->gate.pause();
}
void Job::resume() {
  impl_->gate.resume();
}
void Job::stop() {
  impl_->thread.request_stop();
}
bool Job::finished() const {
  return impl_->finished;
}
store::RunId Job::run() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->run;
}
void Job::wait() {
  if (impl_->thread.joinable()) impl_->thread.join();
}

store::RunOutcome run_blocking(const JobRequest& request, const EventSink& sink, std::stop_token stop) {
  const auto record = open_record(request);
  train::PauseGate gate;
  return execute(*record, sink, std::move(stop), gate);
}

}  // namespace mw::jobs
