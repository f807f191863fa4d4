// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session/predictor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "ui/session/document.h"

namespace mw::ui {

Predictor::Predictor(plan::LoadContext context, QObject* parent)
    : QObject(parent),
      context_(std::move(context)),
      worker_([this](const Request& request, const std::stop_token& stop,
                     const LatestTaskWorker<Request>::Pause& pause) { work(request, stop, pause); }) {}

void Predictor::request(const Document& document) {
  invalid_ = document.has_errors();
  previews_ = false;
  if (invalid_) design_.reset();
  submit(document.experiment());
}

void Predictor::request(const experiment::Experiment& experiment) {
  invalid_ = false;
  previews_ = true;
  submit(experiment);
}

void Predictor::submit(const experiment::Experiment& experiment) {
  bound_.reset();
  worker_.submit({++requested_, experiment});
  emit changed();
}

void Predictor::work(const Request& request, const std::stop_token& stop,
                     const LatestTaskWorker<Request>::Pause& pause) {
  Result first = plan(request, plan::ReadData::no, stop);
  const bool follows = first.design && first.design->plan().memory.is_bound;
  first.last = !follows;
  if (follows)  // the rows of the data may fit
    std::erase_if(first.diagnostics, [](const plan::Diagnostic& d) { return d.problem.id == "MEMORY"; });
  deliver(std::move(first));
  discarded_->drain();  // not before, as it takes a millisecond
  if (!follows || !pause(std::chrono::milliseconds(400))) return;
  Result exact = plan(request, plan::ReadData::yes, stop);
  exact.last = true;
  deliver(std::move(exact));
  discarded_->drain();
}

// Taken at once and not with the next frame, so that an edit is painted up to 33 ms earlier.
void Predictor::deliver(Result result) {
  results_.push(std::move(result), Delivery::state);
  QMetaObject::invokeMethod(this, &Predictor::drain, Qt::QueuedConnection);
}

namespace {

// Problems of the plan that the checker does not report with a fix.
std::vector<Problem> problems_beyond_checker(const plan::ExperimentPlan& planned,
                                             const std::vector<plan::Diagnostic>& diagnostics) {
  std::vector<Problem> out;
  for (const Problem& p : planned.problems)
    if (std::none_of(diagnostics.begin(), diagnostics.end(), [&](const auto& d) { return d.problem.id == p.id; }))
      out.push_back(p);
  return out;
}

}  // namespace

Predictor::Result Predictor::plan(const Request& request, plan::ReadData read_data, const std::stop_token& stop) {
  Result result{.request = request.number};
  try {
    const plan::PlanContextPtr context = context_();
    try {
      const std::shared_ptr<const views::Design> computed(
          new views::Design(views::design(request.experiment, *context, read_data, stop)),
          [discarded = discarded_](const views::Design* d) {
            discarded->push(std::unique_ptr<const views::Design>(d), Delivery::state);
          });
      result.diagnostics = computed->planned.diagnosis.beyond_the_document();
      result.problems = problems_beyond_checker(computed->planned, result.diagnostics);
      result.design = computed;
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::cancelled) return result;
      result.problems.push_back(error.problem());
      result.diagnostics = plan::diagnose(request.experiment, *context).beyond_the_document();
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
      result.problems.clear();
    }
    take(std::move(result));
    emit changed();
  }
}

void Predictor::take(Result result) {
  completed_ = result.request;
  problems_ = std::move(result.problems);
  diagnostics_ = std::move(result.diagnostics);
  if (!result.last && !previews_ && design_ && !design_->plan().memory.is_bound && design_->request().engine) {
    bound_ = std::move(result.design);
    return;
  }
  if (result.last) {
    settled_ = result.request;
    if (!result.design) result.design = std::move(bound_);  // the data cannot be read, so only the bound is known
    bound_.reset();
    if (!result.design && design_ && designed_ == result.request) return;  // the bound is already shown
  }
  design_ = std::move(result.design);
  designed_ = result.request;
}

}  // namespace mw::ui

#include "moc_predictor.cpp"
