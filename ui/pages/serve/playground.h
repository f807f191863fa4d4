// SPDX-License-Identifier: GPL-3.0-or-later
// Prompts for the model of the document: answers of the base model and of an adapter are generated side by side with
// the same weights. GUI thread.
#pragma once
#include "ui/pages/serve/answer_pane.h"
#include "ui/pages/serve/model_host.h"

class QComboBox;
class QPlainTextEdit;
class QPushButton;
class QToolButton;

namespace mw::ui {

class Playground : public QWidget {
  Q_OBJECT
 public:
  Playground(Document& document, ModelHost& host, QWidget* parent);
  QPlainTextEdit& prompt() { return *prompt_; }
  AnswerPane& base() { return *base_; }
  AnswerPane& tuned() { return *tuned_; }
  QToolButton& tokens() { return *tokens_; }
  bool is_answering() const { return base_->is_answering() || tuned_->is_answering(); }
  void generate();
  void stop();
  void show_frame();

 signals:
  void adapter_wanted();  // the user wants to set one in the form

 private:
  void ask(const std::shared_ptr<jobs::ModelServer>& model);
  void update_state();

  Document& document_;
  ModelHost& host_;
  QPlainTextEdit* prompt_;
  QPushButton *generate_, *stop_, *add_adapter_;
  QToolButton* tokens_;
  QComboBox* adapter_;
  AnswerPane *base_, *tuned_;
};

}  // namespace mw::ui
