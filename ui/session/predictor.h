// SPDX-License-Identifier: GPL-3.0-or-later
// Predicts memory, time and cost of the document after every edit, on a worker thread. On this machine it predicts
// memory by the formulas of the engine; for other targets it computes the complete plan. A newer request replaces an
// older one, whose results are dropped. GUI thread.
#pragma once
#include <QObject>
#include <optional>

#include "core/base/latest_task_worker.h"
#include "core/base/mailbox.h"
#include "core/planning/diagnostics.h"
#include "core/planning/predict.h"
#include "core/views/design.h"

namespace mw::ui {

class Document;

class Predictor : public QObject {
  Q_OBJECT
 public:
  enum class Kind { design, memory };  // design: the plan for the target; memory: of the engine on this machine
  struct Result {
    std::uint64_t request = 0;
    Kind kind = Kind::memory;
    bool last = false;                                 // no further result follows for this request
    std::optional<planning::Prediction> prediction{};  // memory of the engine on this machine
    views::DesignPtr design{};
    std::vector<Problem> problems{};                  // why there is no prediction
    std::vector<planning::Diagnostic> diagnostics{};  // of the checker, with the design; MEMORY, with the last result
  };
  explicit Predictor(plan::LoadContext context, QObject* parent = nullptr);
  // For a document with errors the prediction is removed at once, and only diagnostics are computed.
  void request(const Document& document);
  void request(const experiment::Experiment& experiment);  // previews a change of the document
  void drain();
  // The document has errors or the planner rejects it, so there is no prediction until it changes; prediction() and
  // design() are null.
  bool has_no_prediction() const;
  // The latest prediction. An exact prediction is kept, outdated, until the next exact one, so that the display does
  // not jump to the upper bound in between.
  const std::optional<planning::Prediction>& prediction() const { return prediction_; }
  // The design for the target, which may be this machine; null before the first result.
  const views::DesignPtr& design() const { return design_; }
  bool is_design_outdated() const { return designed_ != requested_; }
  const std::vector<Problem>& problems() const { return problems_; }
  const std::vector<planning::Diagnostic>& diagnostics() const { return diagnostics_; }
  bool is_stale() const { return completed_ != requested_; }     // no result for the latest request yet
  bool is_outdated() const { return predicted_ != requested_; }  // the prediction belongs to an earlier document
  bool is_settled() const { return settled_ == requested_; }     // no more results will follow

 signals:
  void changed();

 private:
  struct Request {
    std::uint64_t number = 0;
    experiment::Experiment experiment;
  };
  void submit(const experiment::Experiment& experiment);
  void work(const Request& request, const std::stop_token& stop, const LatestTaskWorker<Request>::Pause& pause);
  Result predict(const Request& request, planning::ReadData read_data, std::stop_token cancel);
  Result design(const Request& request);
  void take_design(Result result);
  void take_prediction(Result result);
  // Discarded designs; the worker destroys them, because they consist of thousands of allocations.
  using DiscardedDesigns = Mailbox<std::unique_ptr<const views::Design>>;
  std::shared_ptr<DiscardedDesigns> discarded_ = std::make_shared<DiscardedDesigns>();
  Mailbox<Result> results_;
  plan::LoadContext context_;  // called by the worker
  bool invalid_ = false;       // the latest document has errors
  std::uint64_t requested_ = 0, completed_ = 0, predicted_ = 0, designed_ = 0, settled_ = 0;
  views::DesignPtr design_;
  std::optional<planning::Prediction> prediction_, bound_;  // bound_: withheld while an exact one is shown
  std::vector<Problem> problems_;
  std::vector<planning::Diagnostic> diagnostics_;
  LatestTaskWorker<Request> worker_;  // last: it uses the other members
};

}  // namespace mw::ui
