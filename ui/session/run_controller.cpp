// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session/run_controller.h"

#include <algorithm>
#include <mutex>

#include "core/experiment/bound_experiment.h"
#include "core/jobs/job.h"
#include "core/launch/launch.h"
#include "ui/theme/text.h"

namespace mw::ui {

RunKind kind_of(const experiment::Experiment& experiment) {
  const Json& document = experiment.json();  // unchecked: validation reports a kind of the wrong type
  const auto kind = document.find("kind");
  if (kind == document.end()) return RunKind::train;
  return *kind == "size" ? RunKind::size : *kind == "serve" ? RunKind::sweep : RunKind::train;
}

RunKind kind_of(const store::RunRow& row) {
  return row.method == "size" ? RunKind::size : row.method == "sweep" ? RunKind::sweep : RunKind::train;
}

experiment::Kind experiment_kind(RunKind kind) {
  return kind == RunKind::size    ? experiment::Kind::size
         : kind == RunKind::sweep ? experiment::Kind::serve
                                  : experiment::Kind::train;
}

NamedExperiment form_experiment(const Document& document) {
  const auto& file = document.file();
  return {QObject::tr("Form: %1").arg(document.title()),
          document.experiment(),
          file.empty() ? QObject::tr("EXPERIMENT.json") : qpath(file),
          {}};
}

NamedExperiment run_experiment(const RunData& run) {
  QStringList names;
  for (const std::string& name : {run.id, run.name})
    if (!name.empty() && !names.contains(qs(name))) names << qs(name);
  return {QObject::tr("Run: %1").arg(names.join(u"  \u00B7  "_s)), run.record, QObject::tr("EXPERIMENT.json"), run.id};
}

struct RunController::Inbox {
  Mailbox<Event> events;
  std::once_flag first;
};

struct RunController::LaunchBeside {
  Inbox inbox;
  store::RunId run;
  std::unique_ptr<launch::LaunchJob> job;  // last: its sink writes into the inbox until it ends
};

RunController::RunController(std::filesystem::path runs_folder, plan::LoadContext context,
                             std::filesystem::path hardware_folder)
    : store_(std::move(runs_folder)), context_(std::move(context)), hardware_folder_(std::move(hardware_folder)) {
  connect(&loading_, &BackgroundWork::ended, this, &RunController::take_loaded);
}

RunController::~RunController() {
  job_.reset();  // joins; its sink writes into the inbox until then
  launched_.reset();
  beside_.reset();
}

void RunController::start(const experiment::Experiment& experiment) {
  if (is_busy()) return;
  live_ = std::make_shared<RunData>();
  live_->record = experiment;
  live_->name.clear();  // set by the Started event; the job reports a name of the wrong type
  begin({experiment, runs_folder(), std::nullopt});
}

void RunController::continue_run(const store::RunId& run) {
  if (!is_busy()) load(run, Purpose::resume);
}

EventSink RunController::begin() {
  live_->is_live = true;
  stopping_ = remote_started_ = attached_ = false;
  dropped_ = 0;
  inbox_ = std::make_shared<Inbox>();
  return [inbox = inbox_](const Event& event) {
    std::call_once(inbox->first, lower_thread_priority);  // the first event precedes the threads of the engine
    inbox->events.push(event, is_telemetry(event) ? Delivery::telemetry : Delivery::state);
  };
}

void RunController::begin(jobs::JobRequest request) {
  request.context = context_;
  request.hardware_folder = hardware_folder_;
  job_ = std::make_unique<jobs::Job>(std::move(request), begin());
  show(live_);
  emit state_changed();
}

void RunController::launch(launch::LaunchRequest request) {
  if (beside_) return;
  request.runs_folder = runs_folder();
  if (is_busy()) {
    beside_ = std::make_unique<LaunchBeside>();
    beside_->job = std::make_unique<launch::LaunchJob>(
        std::move(request), context_,
        [inbox = &beside_->inbox](const Event& event) { inbox->events.push(event, Delivery::state); });
    return emit state_changed();
  }
  live_ = std::make_shared<RunData>();
  live_->record = request.experiment;
  launched_ = std::make_unique<launch::LaunchJob>(std::move(request), context_, begin());
  emit state_changed();
}

void RunController::attach(importing::FollowRequest request) {
  if (is_busy()) return;
  live_ = std::make_shared<RunData>();
  live_->record.set_value("name", request.name.empty() ? request.source : request.name);
  request.runs_folder = runs_folder();
  EventSink sink = begin();
  attached_ = true;
  launched_ = std::make_unique<launch::LaunchJob>(std::move(request), std::move(sink));
  emit state_changed();
}

void RunController::reattach(const store::RunId& run, const std::filesystem::path& resources) {
  resources_ = resources;
  if (!is_busy()) load(run, Purpose::reattach);
}

void RunController::cancel_launch() {
  beside_ ? beside_->job->cancel() : stop();
}

// A job that runs on its own needs no supervisor: whoever reattaches to it continues the record.
void RunController::drain_beside() {
  const bool has_ended = beside_->job->finished();
  const auto drained = beside_->inbox.events.drain();
  for (const Event& event : drained.items)
    if (const auto* started = std::get_if<event::Started>(&event.body); started && started->info.is_object())
      beside_->run = started->info.value("run", "");
  if (!drained.items.empty() && has_remote_started(beside_->run)) beside_->job->detach();
  if (!has_ended) return;
  const std::optional<Problem> failure = beside_->job->problem();
  const QString run = qs(beside_->run);
  beside_.reset();
  emit state_changed();
  if (failure || run.isEmpty()) return emit launch_failed(failure.value_or(Problem{}));
  emit launched_beside(run);
}

void RunController::detach() {
  if (launched_) launched_->detach();
}

void RunController::pause() {
  if (job_) job_->pause();
}

void RunController::resume() {
  if (job_) job_->resume();
}

void RunController::stop() {
  if (!is_busy() || stopping_) return;
  stopping_ = true;
  if (job_) job_->stop();
  if (launched_) launched_->cancel();
  emit state_changed();
}

void RunController::drain() {
  if (beside_) drain_beside();
  if (is_busy()) {
    const bool has_ended = launched_ && launched_->finished();  // read before draining, so that no event is missed
    auto drained = inbox_->events.drain();
    const RunState before = live_->view.state();
    for (const Event& event : drained.items) apply_event(event);
    if (job_ && live_->id.empty()) live_->id = job_->run();
    if (drained.dropped_total != dropped_) {
      dropped_ = drained.dropped_total;
      reload_live();
    }
    if (is_remote() && !remote_started_ && !drained.items.empty()) remote_started_ = has_remote_started(live_->id);
    if (!drained.items.empty()) {
      emit live_updated();
      if (shown(live_->kind()) == live_) emit shown_updated();
    }
    if (has_ended)
      finish_launch();
    else if (job_ && live_->view.ended() && job_->finished())
      finish_job();
    else if (before != live_->view.state())
      emit state_changed();
  }
}

// The run has a cursor as soon as the job may be running.
bool RunController::has_remote_started(const store::RunId& run) const {
  if (run.empty()) return false;
  try {
    return store::Store(runs_folder()).cursor(run).has_value();
  } catch (const Error&) {
    return false;  // retried with the next events
  }
}

void RunController::apply_event(const Event& event) {
  // A resumed run already has the record of the earlier steps; events do not repeat it.
  live_->view.feed(event);
  const auto* started = std::get_if<event::Started>(&event.body);
  if (!started || !started->info.is_object()) return;
  if (started->info.contains("name") && started->info["name"].is_string())
    live_->name = started->info["name"].get<std::string>();
  if (launched_ && live_->id.empty()) {
    live_->id = started->info.value("run", "");
    show(live_);
    emit launched(qs(live_->id));
  }
}

// The record has ended, the job was detached, or its supervision failed.
void RunController::finish_launch() {
  const std::optional<Problem> failure = launched_->problem();
  const bool has_run = !live_->id.empty();
  if (failure && has_run) emit problem(*failure);
  if (has_run) return finish_job();
  launched_.reset();
  live_.reset();
  stopping_ = false;
  emit state_changed();
  emit launch_failed(failure.value_or(Problem{}));
}

// Telemetry was dropped because it came too fast; the store has all of it.
void RunController::reload_live() {
  if (live_->id.empty()) return;
  try {
    const RunPtr before = live_;
    live_ = load_run(runs_folder(), live_->id);  // a new object, because charts still refer to the old one
    live_->is_live = true;
    if (shown_ == before) shown_ = live_;
    std::replace(by_kind_.begin(), by_kind_.end(), before, live_);
    emit shown_changed();
  } catch (const Error& error) {
    emit problem(error.problem());
  }
}

void RunController::finish_job() {
  job_.reset();
  launched_.reset();
  live_->is_live = false;
  stopping_ = false;
  const auto& finished = live_->view.finished();
  if (finished && finished->state == RunState::failed)
    emit problem({.id = "RUN",
                  .message = finished->error,
                  .place = live_->id,
                  .fix = live_->id.empty() ? "" : "the log of the run says what came before"});
  emit ended(qs(live_->id));
  emit state_changed();
  if (shown(live_->kind()) == live_) emit shown_updated();
}

void RunController::open(const store::RunId& run) {
  if (live_ && live_->id == run && is_busy()) {
    show_live();
    return;
  }
  load(run, Purpose::show);
}

// Replaces an earlier request that is still being read.
void RunController::load(const store::RunId& run, Purpose purpose) {
  purpose_ = purpose;
  loading_.start([folder = runs_folder(), run](const ReportProgress&, const std::stop_token& stop) {
    return load_run(folder, run, stop);
  });
}

void RunController::take_loaded() {
  if (loading_.problem()) emit problem(*loading_.problem());
  if (!loading_.result()) return;
  const RunPtr run = *loading_.result();
  if (purpose_ == Purpose::show) return show(run);
  if (is_busy()) return;
  live_ = run;
  if (purpose_ == Purpose::resume) return begin({live_->record, runs_folder(), live_->id});
  launched_ = std::make_unique<launch::LaunchJob>(
      launch::ReattachRequest{.run = live_->id, .runs_folder = runs_folder(), .resources = resources_}, begin());
  show(live_);
  emit state_changed();
}

void RunController::show_live() {
  if (live_) show(live_);
}

void RunController::close_shown(const store::RunId& run) {
  const auto is_deleted = [&run](const RunPtr& p) { return p && p->id == run && !p->is_live; };
  if (!is_deleted(shown_) && std::none_of(by_kind_.begin(), by_kind_.end(), is_deleted)) return;
  for (RunPtr& p : by_kind_)
    if (is_deleted(p)) p.reset();
  if (is_deleted(shown_)) shown_.reset();
  emit shown_changed();
}

void RunController::activate(RunKind kind) {
  if (const RunPtr run = shown(kind); run && run != shown_) show(run);
}

void RunController::show(RunPtr run) {
  by_kind_[static_cast<size_t>(run->kind())] = run;
  shown_ = std::move(run);
  emit shown_changed();
}

RunPtr load_run(const std::filesystem::path& runs_folder, const store::RunId& run, std::stop_token stop) {
  store::Store store(runs_folder);
  auto data = std::make_shared<RunData>();
  const auto row = store.find(run);
  if (!row)
    throw Error("RUN", "the run does not exist",
                {.file = runs_folder.string(), .place = run, .fix = "refresh the Runs table"});
  data->id = run;
  data->name = row->name;
  data->record = store.experiment(run);
  data->view = views::read_run(store, run, stop);
  return data;
}

}  // namespace mw::ui

#include "moc_run_controller.cpp"
