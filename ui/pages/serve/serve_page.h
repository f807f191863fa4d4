// SPDX-License-Identifier: GPL-3.0-or-later
// The Serve page with tabs for latency sweeps, the mesh envelope, batch sizes, and the server with its playground. GUI
// thread.
#pragma once
#include <QTabWidget>

#include "ui/pages/serve/envelope_tab.h"
#include "ui/pages/serve/server_tab.h"
#include "ui/pages/serve/size_page.h"
#include "ui/pages/serve/sweep_page.h"

namespace mw::ui {

class ServePage : public QTabWidget, public WindowPage {
  Q_OBJECT
 public:
  ServePage(Document& document, RunController& runs, QWidget* parent = nullptr);
  SweepPage& sweep() { return *sweep_; }
  SizePage& sizes() { return *sizes_; }
  ServerTab& server() { return *server_; }
  EnvelopeTab& envelope() { return *envelope_; }
  RunKind kind() const { return currentWidget() == sizes_ ? RunKind::size : RunKind::sweep; }
  void show_kind(RunKind kind) override;
  void show_server() { setCurrentWidget(server_); }
  void show_envelope() { setCurrentWidget(envelope_); }

  void attach(Workspace& workspace) override;
  void update_actions() override;
  void show_frame() override;
  void restyle() override;
  void save_state(Session& session) const override;
  void restore_state(const Session& session) override;
  bool follow_newest() override;
  QString subcommand() const override;
  std::optional<RunKind> run_kind() const override;
  RunPtr shown_run() const override { return run_kind() ? runs_.shown(kind()) : nullptr; }
  std::vector<store::RunId> runs_to_compare() const override;
  std::optional<ReplayOffer> replay_offer() const override;
  QStringList unfinished_work() const override;
  void stop_work() override { envelope_->stop(); }

 private:
  void register_actions();
  bool shows_server() const { return currentWidget() == server_; }
  bool shows_envelope() const { return currentWidget() == envelope_; }
  RunController& runs_;
  SweepPage* sweep_;
  SizePage* sizes_;
  ServerTab* server_;
  EnvelopeTab* envelope_;
};

}  // namespace mw::ui
