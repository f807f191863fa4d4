// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the points of a sweep with the units of vLLM (ms, tokens/s) and audit findings.
#pragma once
#include <mutex>

#include "core/base/latest_task_worker.h"
#include "core/jobs/sweep_run.h"
#include "ui/run_views/run_lines.h"
#include "ui/session/run_controller.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

struct SweepRow {
  formats::BenchPoint point;
  size_t index = 0;  // of the point in its sweep
};

class SweepModel : public TableModel<SweepRow> {
  Q_DECLARE_TR_FUNCTIONS(mw::ui::SweepModel)
 public:
  enum Column { input_len, request_rate, verdict, cache, audit, first_number };  // then vLLM's metrics
  SweepModel();
  void show(SweepViewPtr view);
  bool is_column_used(int column) const;
  QString csv() const;  // with vLLM's names

 private:
  QVariant cell(const SweepRow& row, int column, int role) const;
  std::vector<const audit::AuditFinding*> findings(const SweepRow& row) const;  // of the point, except fine ones
  Columns table_columns() const;
  SweepViewPtr view_;
};

// Builds the view of a sweep on a worker thread: reads every point once and repeats the audit. Also destroys old views
// there. GUI thread.
class SweepReader {
 public:
  explicit SweepReader(plan::LoadContext context);
  void show(RunPtr run);  // from the beginning; null: none
  void grow();            // reads new points
  bool is_busy() const { return requested_ != completed_; }
  SweepViewPtr drain();  // the newest view, once; null: none
  void discard(SweepViewPtr view);

 private:
  struct Input {  // data not yet taken by the worker thread
    bool from_start = false;
    Json info;
    std::vector<event::ResultPoint> points;
    std::vector<SweepViewPtr> discarded;
  };
  struct Result {
    std::uint64_t request = 0;
    SweepViewPtr view;
  };
  void send(Input input);
  void work(std::uint64_t request);

  plan::LoadContext load_context_;  // for the audit
  RunPtr run_;
  std::size_t sent_ = 0;                                     // points
  bool settings_sent_ = false;                               // its settings were known when it was sent
  std::uint64_t requested_ = 0, completed_ = 0, first_ = 0;  // first_: first request for this run
  std::mutex mutex_;
  Input input_;
  // Used by the worker thread only.
  std::optional<views::GrowingSweep> sweep_;
  Mailbox<Result> results_;
  LatestTaskWorker<std::uint64_t> worker_;  // last: it uses the other members
};

}  // namespace mw::ui
