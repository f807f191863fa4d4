// SPDX-License-Identifier: GPL-3.0-or-later
// The model of the document, loaded on a worker thread, that the server and the playground of the Serve page share. GUI
// thread.
#pragma once
#include "core/base/mailbox.h"
#include "core/jobs/model_server.h"
#include "ui/session/background_task.h"
#include "ui/session/document.h"

namespace mw::ui {

class ModelHost : public QObject {
  Q_OBJECT
 public:
  explicit ModelHost(Document& document);
  QString refusal() const;                                            // why this machine cannot load it; empty: it can
  bool is_busy() const { return task_.is_busy(); }                    // loading, starting or stopping
  const BackgroundWork& task() const { return task_; }                // progress
  void cancel() { task_.cancel(); }                                   // of loading
  const std::optional<Problem>& problem() const { return problem_; }  // of the last task
  // Null before it is loaded, and while is_busy().
  std::shared_ptr<jobs::ModelServer> model() const { return is_busy() ? nullptr : model_; }
  bool is_listening() const { return !address_.isEmpty(); }
  const QString& address() const { return address_; }
  // The form describes another model than the one that is loaded. A server that listens keeps its model.
  bool is_outdated() const;

  void listen(serve::HttpOptions options);
  void stop_listening();
  // Loads the model unless it is loaded, then calls `use`.
  void with_model(std::function<void(std::shared_ptr<jobs::ModelServer>)> use);

 signals:
  void changed();
  void unloading();  // another model will be loaded: release this one

 private:
  struct Outcome {
    std::shared_ptr<jobs::ModelServer> model;
    std::optional<Problem> problem;
    QString address;
  };
  using Step = std::function<void(jobs::ModelServer&)>;  // on the worker thread; may throw Error
  void run(Step step, std::function<void()> then);
  void take();

  Document& document_;
  std::shared_ptr<jobs::ModelServer> model_;
  experiment::Experiment loaded_;
  QString address_;
  std::optional<Problem> problem_;
  std::function<void()> then_;
  BackgroundTask<Outcome> task_{"SERVE"};
};

}  // namespace mw::ui
