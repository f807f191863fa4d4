// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/pricer.h"

#include <algorithm>
#include <chrono>

namespace mw::ui {

Pricer::Pricer(Folders folders, QObject* parent)
    : QObject(parent), folders_(std::move(folders)), thread_([this](std::stop_token stop) { work(std::move(stop)); }) {}

Pricer::~Pricer() {
  thread_.request_stop();
  {
    const std::lock_guard lock(mutex_);
    current_.request_stop();
  }
  wake_.notify_all();
}

void Pricer::ask(const runs::Experiment& experiment) {
  {
    const std::lock_guard lock(mutex_);
    next_ = Question{++asked_, experiment};
    bound_.reset();
    current_.request_stop();
  }
  wake_.notify_one();
  emit changed();
}

// At once with every row as long as it may be; then, when nothing newer came for a moment, with the data's real rows.
// What runs elsewhere has one answer.
void Pricer::work(std::stop_token stop) {
  using namespace std::chrono_literals;
  while (!stop.stop_requested()) {
    Question question;
    std::stop_token cancel;
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, stop, [this] { return next_.has_value(); })) return;
      question = std::move(*next_);
      next_.reset();
      current_ = std::stop_source();
      cancel = current_.get_token();
    }
    Answer drawn = design(question);
    const bool elsewhere = drawn.last;
    answers_.push(std::move(drawn), Delivery::state);
    if (elsewhere) continue;
    Answer bound = predict(question, runs::ReadData::no, cancel);
    bound.last = !bound.prediction;
    const bool failed = bound.last;
    answers_.push(std::move(bound), Delivery::state);
    if (failed) continue;
    {
      std::unique_lock lock(mutex_);
      if (wake_.wait_for(lock, stop, 400ms, [this] { return next_.has_value(); })) continue;
    }
    if (stop.stop_requested()) return;
    Answer exact = predict(question, runs::ReadData::yes, cancel);
    exact.last = true;
    answers_.push(std::move(exact), Delivery::state);
  }
}

Pricer::Answer Pricer::predict(const Question& question, runs::ReadData read_data, std::stop_token cancel) {
  Answer answer{.question = question.number};
  try {
    answer.prediction = runs::predict(question.experiment, read_data, std::move(cancel));
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::cancelled) answer.problems.push_back(error.problem());
  } catch (const std::exception& error) {
    answer.problems.push_back({.id = "PREDICT", .severity = Severity::warning, .message = error.what()});
  }
  return answer;
}

namespace {

// The plan's own problems less those that the checker says too, with a fix.
std::vector<Problem> unsaid(const runs::Planned& planned, const std::vector<runs::Diagnostic>& diagnostics) {
  std::vector<Problem> out;
  for (const Problem& p : planned.problems)
    if (std::none_of(diagnostics.begin(), diagnostics.end(), [&](const auto& d) { return d.problem.id == p.id; }))
      out.push_back(p);
  return out;
}

}  // namespace

Pricer::Answer Pricer::design(const Question& question) {
  Answer answer{
      .question = question.number, .about = About::design, .last = runs::planned_elsewhere(question.experiment)};
  try {
    if (!catalogue_) catalogue_ = hardware::Catalogue::load(folders_.hardware, folders_.own_hardware);
    try {
      auto drawn = std::make_shared<runs::Design>(runs::design(question.experiment, *catalogue_));
      // Here the planner's memory is not the engine's: only what needs no plan is said.
      answer.diagnostics = (answer.last ? drawn->planned.diagnosis : runs::diagnose(question.experiment, *catalogue_))
                               .beyond_the_document();
      if (answer.last) answer.problems = unsaid(drawn->planned, answer.diagnostics);
      answer.design = std::move(drawn);
    } catch (const Error& error) {
      if (answer.last) answer.problems.push_back(error.problem());  // here the engine's own prediction says it
      answer.diagnostics = runs::diagnose(question.experiment, *catalogue_).beyond_the_document();
    }
    for (const Problem& p : catalogue_->problems()) answer.problems.push_back(p);
  } catch (const Error& error) {
    answer.problems.push_back(error.problem());
  } catch (const std::exception& error) {
    answer.problems.push_back({.id = "PLAN", .severity = Severity::warning, .message = error.what()});
  }
  return answer;
}

void Pricer::drain() {
  for (Answer& answer : answers_.drain().items) {
    if (answer.question != asked_) continue;
    answer.about == About::design ? take_design(std::move(answer)) : take_prediction(std::move(answer));
    emit changed();
  }
}

void Pricer::take_design(Answer answer) {
  diagnostics_ = std::move(answer.diagnostics);
  if (answer.design) {
    design_ = std::move(answer.design);
    designed_ = answer.question;
  }
  if (!answer.last) return;  // the prediction of this machine follows
  answered_ = settled_ = answer.question;
  problems_ = std::move(answer.problems);
  prediction_.reset();
}

void Pricer::take_prediction(Answer answer) {
  answered_ = answer.question;
  problems_ = std::move(answer.problems);
  if (!answer.last && prediction_ && prediction_->basis == runs::Basis::exact) {
    bound_ = std::move(answer.prediction);
    return;
  }
  if (answer.last) {
    settled_ = answer.question;
    if (!answer.prediction)
      answer.prediction = std::move(bound_);  // the data cannot be read: the bound is all there is
    bound_.reset();
  }
  if (!answer.prediction) return;
  prediction_ = std::move(answer.prediction);
  predicted_ = answered_;
}

}  // namespace mw::ui
