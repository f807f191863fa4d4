// SPDX-License-Identifier: GPL-3.0-or-later
// Plans the document after every edit, on a worker thread. A training on this machine is planned twice: with rows as
// long as they may be, then with those of its data. A newer request replaces an older one, whose results are dropped.
// GUI thread.
#pragma once
#include <QObject>

#include "core/base/latest_task_worker.h"
#include "core/base/mailbox.h"
#include "core/plan/document/diagnostics.h"
#include "core/views/design_view.h"

namespace mw::ui {

class Document;

class Predictor : public QObject {
  Q_OBJECT
 public:
  struct Result {
    std::uint64_t request = 0;
    bool last = false;  // no further result follows for this request
    views::DesignPtr design{};
    std::vector<Problem> problems{};              // why there is no design
    std::vector<plan::Diagnostic> diagnostics{};  // of the checker
  };
  explicit Predictor(plan::LoadContext context, QObject* parent = nullptr);
  // For a document with errors the prediction is removed at once, and only diagnostics are computed.
  void request(const Document& document);
  void request(const experiment::Experiment& experiment);  // previews a change of the document
  void drain();  // takes the results that have arrived; called by the event loop
  // The document has errors or the planner rejects it: design() is null until it changes.
  bool has_no_prediction() const { return invalid_ || (is_settled() && !design_); }
  // The latest plan, with its design; null before the first result. After an edit an exact one is kept, outdated, until
  // the next exact one, so that figures do not jump to the upper bound in between.
  const views::DesignPtr& design() const { return design_; }
  bool is_outdated() const { return designed_ != requested_; }  // design() is of an earlier document
  const std::vector<Problem>& problems() const { return problems_; }
  const std::vector<plan::Diagnostic>& diagnostics() const { return diagnostics_; }
  bool is_stale() const { return completed_ != requested_; }  // no result for the latest request yet
  bool is_settled() const { return settled_ == requested_; }  // no more results will follow

 signals:
  void changed();

 private:
  struct Request {
    std::uint64_t number = 0;
    experiment::Experiment experiment;
  };
  void submit(const experiment::Experiment& experiment);
  void work(const Request& request, const std::stop_token& stop, const LatestTaskWorker<Request>::Pause& pause);
  Result plan(const Request& request, plan::ReadData read_data, const std::stop_token& stop);
  void deliver(Result result);  // on the worker thread
  void take(Result result);
  // Discarded designs; the worker destroys them, because they consist of thousands of allocations.
  using DiscardedDesigns = Mailbox<std::unique_ptr<const views::Design>>;
  std::shared_ptr<DiscardedDesigns> discarded_ = std::make_shared<DiscardedDesigns>();
  Mailbox<Result> results_;
  plan::LoadContext context_;  // called by the worker
  bool invalid_ = false;       // the latest document has errors
  bool previews_ = false;      // the latest request is a preview: a bound is shown at once
  std::uint64_t requested_ = 0, completed_ = 0, designed_ = 0, settled_ = 0;
  views::DesignPtr design_, bound_;  // bound_: withheld while an exact one is shown
  std::vector<Problem> problems_;
  std::vector<plan::Diagnostic> diagnostics_;
  LatestTaskWorker<Request> worker_;  // last: it uses the other members
};

}  // namespace mw::ui
