// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session/predictor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/planning/memory_fixes.h"
#include "ui/session/document.h"

namespace mw::ui {

Predictor::Predictor(plan::LoadContext context, QObject* parent)
    : QObject(parent),
      context_(std::move(context)),
      worker_([this](const Request& request, const std::stop_token& stop,
                     const LatestTaskWorker<Request>::Pause& pause) { work(request, stop, pause); }) {}

void Predictor::request(const Document& document) {
  invalid_ = document.has_errors();
  if (invalid_) {
    design_.reset();
    prediction_.reset();
  }
  submit(document.experiment());
}

void Predictor::request(const experiment::Experiment& experiment) {
  invalid_ = false;
  submit(experiment);
}

void Predictor::submit(const experiment::Experiment& experiment) {
  bound_.reset();
  worker_.submit({++requested_, experiment});
  emit changed();
}

bool Predictor::has_no_prediction() const {
  return invalid_ || (is_settled() && !prediction_ && !(design_ && views::is_whole(*design_)));
}

// Sends the upper bound first, with all rows at their maximum length, then, unless a newer request arrives, the exact
// prediction for the data. Other targets have one result.
void Predictor::work(const Request& request, const std::stop_token& stop,
                     const LatestTaskWorker<Request>::Pause& pause) {
  Result computed = design(request);
  const bool is_remote = computed.last;
  results_.push(std::move(computed), Delivery::state);
  if (is_remote) return;
  Result bound = predict(request, planning::ReadData::no, stop);
  bound.last = !bound.prediction;
  const bool failed = bound.last;
  results_.push(std::move(bound), Delivery::state);
  if (failed || !pause(std::chrono::milliseconds(400))) return;
  Result exact = predict(request, planning::ReadData::yes, stop);
  exact.last = true;
  if (exact.prediction && !exact.prediction->fits()) try {
      exact.diagnostics = {planning::memory_diagnostic(request.experiment, *exact.prediction, *context_(), stop)};
    } catch (const Error&) {  // reported with the design
    }
  results_.push(std::move(exact), Delivery::state);
}

Predictor::Result Predictor::predict(const Request& request, planning::ReadData read_data, std::stop_token cancel) {
  Result result{.request = request.number};
  try {
    result.prediction = planning::predict(request.experiment, read_data, *context_(), std::move(cancel));
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::cancelled) result.problems.push_back(error.problem());
  } catch (const std::exception& error) {
    result.problems.push_back({.id = "PREDICT", .severity = Severity::warning, .message = error.what()});
  }
  return result;
}

namespace {

// Problems of the plan that the checker does not report with a fix.
std::vector<Problem> problems_beyond_checker(const planning::ExperimentPlan& planned,
                                             const std::vector<planning::Diagnostic>& diagnostics) {
  std::vector<Problem> out;
  for (const Problem& p : planned.problems)
    if (std::none_of(diagnostics.begin(), diagnostics.end(), [&](const auto& d) { return d.problem.id == p.id; }))
      out.push_back(p);
  return out;
}

}  // namespace

Predictor::Result Predictor::design(const Request& request) {
  Result result{
      .request = request.number, .kind = Kind::design, .last = planning::planned_elsewhere(request.experiment)};
  try {
    const plan::PlanContextPtr context = context_();
    try {
      discarded_->drain();
      const std::shared_ptr<const views::Design> computed(
          new views::Design(views::design(request.experiment, *context)),
          [discarded = discarded_](const views::Design* d) {
            discarded->push(std::unique_ptr<const views::Design>(d), Delivery::state);
          });
      // The plan does not describe the engine of this machine, so only checks that need no plan are used.
      result.diagnostics =
          (result.last ? computed->planned.diagnosis : planning::diagnose(request.experiment, *context))
              .beyond_the_document();
      if (result.last) result.problems = problems_beyond_checker(computed->planned, result.diagnostics);
      result.design = computed;
    } catch (const Error& error) {
      if (result.last) result.problems.push_back(error.problem());  // on this machine the prediction reports it
      result.diagnostics = planning::diagnose(request.experiment, *context).beyond_the_document();
    }
    for (const Problem& p : context->problems()) result.problems.push_back(p);
  } catch (const Error& error) {
    result.problems.push_back(error.problem());
  } catch (const std::exception& error) {
    result.problems.push_back({.id = "PLAN", .severity = Severity::warning, .message = error.what()});
  }
  return result;
}

void Predictor::drain() {
  for (Result& result : results_.drain().items) {
    if (result.request != requested_) continue;
    if (invalid_) {  // errors of the planner follow from those of the document
      result.design.reset();
      result.prediction.reset();
      result.problems.clear();
    }
    result.kind == Kind::design ? take_design(std::move(result)) : take_prediction(std::move(result));
    emit changed();
  }
}

void Predictor::take_design(Result result) {
  diagnostics_ = std::move(result.diagnostics);
  design_ = std::move(result.design);
  designed_ = result.request;
  if (!result.last) return;  // the prediction for this machine follows
  completed_ = settled_ = result.request;
  problems_ = std::move(result.problems);
  prediction_.reset();
}

void Predictor::take_prediction(Result result) {
  completed_ = result.request;
  problems_ = std::move(result.problems);
  if (!result.last && prediction_ && prediction_->basis == planning::Basis::exact) {
    bound_ = std::move(result.prediction);
    return;
  }
  if (result.last) {
    settled_ = result.request;
    if (!result.prediction)
      result.prediction = std::move(bound_);  // the data cannot be read, so only the bound is known
    bound_.reset();
    for (planning::Diagnostic& d : result.diagnostics) diagnostics_.insert(diagnostics_.begin(), std::move(d));
  }
  if (!result.prediction && predicted_ == result.request) return;  // the bound is already shown
  prediction_ = std::move(result.prediction);
  predicted_ = completed_;
}

}  // namespace mw::ui

#include "moc_predictor.cpp"
