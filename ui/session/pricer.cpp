// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session/pricer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "ui/session/document.h"

namespace mw::ui {

Pricer::Pricer(Folders folders, QObject* parent)
    : QObject(parent),
      folders_(std::move(folders)),
      worker_([this](const Question& question, const std::stop_token& stop,
                     const LatestTaskWorker<Question>::Pause& pause) { work(question, stop, pause); }) {}

void Pricer::ask(const Document& document) {
  invalid_ = document.has_errors();
  if (invalid_) {
    design_.reset();
    prediction_.reset();
  }
  ask_worker(document.experiment());
}

void Pricer::ask(const experiment::Experiment& experiment) {
  invalid_ = false;
  ask_worker(experiment);
}

void Pricer::ask_worker(const experiment::Experiment& experiment) {
  bound_.reset();
  worker_.submit({++asked_, experiment, hardware_});
  emit changed();
}

bool Pricer::has_no_prediction() const {
  return invalid_ || (settled() && !prediction_ && !(design_ && views::is_whole(*design_)));
}

// Sends the upper bound first, with all rows at their maximum length, then, unless a newer request arrives, the exact
// prediction for the data. Other targets have one result.
void Pricer::work(const Question& question, const std::stop_token& stop,
                  const LatestTaskWorker<Question>::Pause& pause) {
  Answer drawn = design(question);
  const bool elsewhere = drawn.last;
  answers_.push(std::move(drawn), Delivery::state);
  if (elsewhere) return;
  Answer bound = predict(question, planning::ReadData::no, stop);
  bound.last = !bound.prediction;
  const bool failed = bound.last;
  answers_.push(std::move(bound), Delivery::state);
  if (failed || !pause(std::chrono::milliseconds(400))) return;
  Answer exact = predict(question, planning::ReadData::yes, stop);
  exact.last = true;
  answers_.push(std::move(exact), Delivery::state);
}

Pricer::Answer Pricer::predict(const Question& question, planning::ReadData read_data, std::stop_token cancel) {
  Answer answer{.question = question.number};
  try {
    answer.prediction = planning::predict(question.experiment, read_data, std::move(cancel));
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::cancelled) answer.problems.push_back(error.problem());
  } catch (const std::exception& error) {
    answer.problems.push_back({.id = "PREDICT", .severity = Severity::warning, .message = error.what()});
  }
  return answer;
}

namespace {

// Problems of the plan that the checker does not report with a fix.
std::vector<Problem> unsaid(const planning::ExperimentPlan& planned,
                            const std::vector<planning::Diagnostic>& diagnostics) {
  std::vector<Problem> out;
  for (const Problem& p : planned.problems)
    if (std::none_of(diagnostics.begin(), diagnostics.end(), [&](const auto& d) { return d.problem.id == p.id; }))
      out.push_back(p);
  return out;
}

}  // namespace

Pricer::Answer Pricer::design(const Question& question) {
  Answer answer{
      .question = question.number, .about = About::design, .last = planning::planned_elsewhere(question.experiment)};
  try {
    if (std::exchange(loaded_, question.hardware) != question.hardware) catalogue_.reset();
    if (!catalogue_) catalogue_ = hardware::Catalogue::load(folders_.hardware, folders_.own_hardware);
    try {
      bin_->drain();
      const std::shared_ptr<const views::Design> drawn(
          new views::Design(views::design(question.experiment, *catalogue_)), [bin = bin_](const views::Design* d) {
            bin->push(std::unique_ptr<const views::Design>(d), Delivery::state);
          });
      // The plan does not describe the engine of this machine, so only checks that need no plan are used.
      answer.diagnostics =
          (answer.last ? drawn->planned.diagnosis : planning::diagnose(question.experiment, *catalogue_))
              .beyond_the_document();
      if (answer.last) answer.problems = unsaid(drawn->planned, answer.diagnostics);
      answer.design = drawn;
    } catch (const Error& error) {
      if (answer.last) answer.problems.push_back(error.problem());  // on this machine the prediction reports it
      answer.diagnostics = planning::diagnose(question.experiment, *catalogue_).beyond_the_document();
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
    if (invalid_) {  // errors of the planner follow from those of the document
      answer.design.reset();
      answer.prediction.reset();
      answer.problems.clear();
    }
    answer.about == About::design ? take_design(std::move(answer)) : take_prediction(std::move(answer));
    emit changed();
  }
}

void Pricer::take_design(Answer answer) {
  diagnostics_ = std::move(answer.diagnostics);
  design_ = std::move(answer.design);
  designed_ = answer.question;
  if (!answer.last) return;  // the prediction for this machine follows
  answered_ = settled_ = answer.question;
  problems_ = std::move(answer.problems);
  prediction_.reset();
}

void Pricer::take_prediction(Answer answer) {
  answered_ = answer.question;
  problems_ = std::move(answer.problems);
  if (!answer.last && prediction_ && prediction_->basis == planning::Basis::exact) {
    bound_ = std::move(answer.prediction);
    return;
  }
  if (answer.last) {
    settled_ = answer.question;
    if (!answer.prediction)
      answer.prediction = std::move(bound_);  // the data cannot be read, so only the bound is known
    bound_.reset();
  }
  if (!answer.prediction && predicted_ == answer.question) return;  // the bound is already shown
  prediction_ = std::move(answer.prediction);
  predicted_ = answered_;
}

}  // namespace mw::ui
