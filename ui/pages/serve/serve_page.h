// SPDX-License-Identifier: GPL-3.0-or-later
// The Serve page with tabs for latency sweeps, batch sizes, and the server with its playground. GUI thread.
#pragma once
#include <QTabWidget>

#include "ui/pages/serve/server_tab.h"
#include "ui/pages/serve/size_page.h"
#include "ui/pages/serve/sweep_page.h"
#include "ui/session/workspace.h"

namespace mw::ui {

class ServePage : public QTabWidget, public WindowPage {
  Q_OBJECT
 public:
  ServePage(Document& document, RunController& runs, QWidget* parent = nullptr);
  SweepPage& sweep() { return *sweep_; }
  SizePage& sizes() { return *sizes_; }
  ServerTab& server() { return *server_; }
  RunKind kind() const { return currentWidget() == sizes_ ? RunKind::size : RunKind::sweep; }
  void show_kind(RunKind kind) { setCurrentIndex(kind == RunKind::size ? 1 : 0); }
  void show_server() { setCurrentWidget(server_); }

  void attach(Workspace& workspace) override;
  void update_actions() override;
  void show_frame() override;
  void restyle() override;
  void save_state(Session& session) const override;
  void restore_state(const Session& session) override;
  bool follow_newest() override;
  QString subcommand() const override;
  std::optional<RunKind> run_kind() const override;
  RunPtr shown_run() const override { return shows_server() ? nullptr : runs_.shown(kind()); }
  std::vector<store::RunId> runs_to_compare() const override;
  std::optional<ReplayOffer> replay_offer() const override;

 private:
  void register_actions();
  bool shows_server() const { return currentWidget() == server_; }
  RunController& runs_;
  SweepPage* sweep_;
  SizePage* sizes_;
  ServerTab* server_;
};

}  // namespace mw::ui
