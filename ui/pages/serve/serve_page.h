// SPDX-License-Identifier: GPL-3.0-or-later
// The Serve page with tabs for latency sweeps and batch sizes. GUI thread.
#pragma once
#include <QTabWidget>

#include "ui/pages/serve/size_page.h"
#include "ui/pages/serve/sweep_page.h"

namespace mw::ui {

class ServePage : public QTabWidget {
  Q_OBJECT
 public:
  ServePage(Document& document, RunController& runs, QWidget* parent = nullptr);
  SweepPage& sweep() { return *sweep_; }
  SizePage& sizes() { return *sizes_; }
  RunKind kind() const { return currentIndex() == 0 ? RunKind::sweep : RunKind::size; }
  void show_kind(RunKind kind) { setCurrentIndex(kind == RunKind::size ? 1 : 0); }
  void show_frame();
  void restyle();
  PlotLink& link() { return kind() == RunKind::size ? sizes_->link() : sweep_->link(); }

 private:
  SweepPage* sweep_;
  SizePage* sizes_;
};

}  // namespace mw::ui
