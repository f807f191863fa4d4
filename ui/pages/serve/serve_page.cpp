// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/serve_page.h"

#include <QTabBar>

namespace mw::ui {

ServePage::ServePage(Document& document, RunController& runs, QWidget* parent)
    : QTabWidget(parent), sweep_(new SweepPage(document, runs)), sizes_(new SizePage(runs)) {
  setDocumentMode(true);
  setAccessibleName(tr("Latency sweeps and batch sizes"));
  addTab(sweep_, tr("Latency Sweep"));
  addTab(sizes_, tr("Batch Size"));
  tabBar()->setAccessibleName(tr("Latency sweep or batch size"));
  tabBar()->setFocusPolicy(Qt::TabFocus);
}

void ServePage::show_frame() {
  sweep_->show_frame();
  sizes_->show_frame();
}

void ServePage::restyle() {
  sweep_->restyle();
  sizes_->restyle();
}

}  // namespace mw::ui
