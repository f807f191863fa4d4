// SPDX-License-Identifier: GPL-3.0-or-later
// The HTTP server of this window and the playground, which share one loaded model. GUI thread.
#pragma once
#include <QElapsedTimer>

#include "ui/pages/serve/playground.h"
#include "ui/session/session.h"

class QLineEdit;
class QProgressBar;
class QSpinBox;
class QSplitter;

namespace mw::ui {

class ResultText;

class ServerTab : public QWidget {
  Q_OBJECT
 public:
  explicit ServerTab(Document& document, QWidget* parent = nullptr);
  ModelHost& host() { return host_; }
  Playground& playground() { return *playground_; }
  QLineEdit& address() { return *address_; }
  QSpinBox& port() { return *port_; }
  QLineEdit& key() { return *key_; }
  const TableModel<serve::LiveRequest>& requests() const { return requests_; }
  QString log() const;
  QString figure(const QString& name) const;  // as displayed
  QString message() const;
  void show_frame();
  void save_state(Session& session) const;
  void restore_state(const Session& session);

 private:
  struct Response {
    std::string method, path;
    int status = 0;
  };
  void build_controls(QVBoxLayout& column);
  void start();
  void update_state();
  void show_figures();
  QString served_text(const jobs::ServedModel& served) const;
  void add_log(const QString& text);

  ModelHost host_;
  std::shared_ptr<Mailbox<Response>> responses_ = std::make_shared<Mailbox<Response>>();
  serve::ServingLoop::State before_;  // at the last update of the figures
  QElapsedTimer since_;
  bool was_listening_ = false;
  QLineEdit *address_, *key_;
  QSpinBox* port_;
  QPushButton *start_, *stop_, *cancel_, *copy_;
  QProgressBar* progress_;
  ResultText* message_;
  std::vector<QLabel*> figures_;
  TableModel<serve::LiveRequest> requests_;
  QPlainTextEdit* log_;
  Playground* playground_;
  QSplitter* rows_;
};

}  // namespace mw::ui
