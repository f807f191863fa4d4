// SPDX-License-Identifier: GPL-3.0-or-later
// The context of the tokens of the shown row: packed neighbours, the served template, and the loss of each token under
// a chosen model, computed on a worker thread. GUI thread.
#pragma once
#include <QObject>

#include "core/jobs/token_report.h"
#include "ui/pages/data/data_reader.h"
#include "ui/session/store_reader.h"

class QMenu;
class QToolButton;

namespace mw::ui {

struct RowContext {
  int window = 0;  // tokens of the sliding window; 0: none
  std::vector<jobs::PackedNeighbour> packed{};
  jobs::TemplateDifference difference{};
  jobs::TokenLosses losses{};
};

class TokenContext : public QObject {
  Q_OBJECT
 public:
  TokenContext(const DataReader& reader, StoreReader& store, QObject* parent = nullptr);
  // The model whose losses are shown: none, the base model, or also the last checkpoint of a run.
  enum class Losses { none, base, run };
  void choose(Losses losses, const store::RunId& run = {});
  Losses losses() const { return losses_; }
  const store::RunId& run() const { return run_; }
  // A button with the menu of models.
  QToolButton* make_button(QWidget* parent);

  void read(const experiment::Experiment& experiment, const views::DataDetail& detail);
  void clear();
  bool is_busy() const { return task_.is_busy(); }
  const RowContext& context() const { return context_; }
  QString note() const;  // of the row; or that losses are being computed, or why there are none

 signals:
  void changed();

 private:
  void fill(QMenu& menu);
  void start();

  const DataReader& reader_;
  StoreReader& store_;
  Losses losses_ = Losses::none;
  store::RunId run_{};
  std::optional<experiment::Experiment> experiment_{};
  views::DataDetail detail_{};
  RowContext context_{};
  BackgroundTask<RowContext> task_{"TOKENS"};
  QToolButton* button_ = nullptr;
};

}  // namespace mw::ui
