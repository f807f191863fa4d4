// SPDX-License-Identifier: GPL-3.0-or-later
// Prompts for the model of the document: answers of the base model and of an adapter are generated side by side with
// the same weights. GUI thread.
#pragma once
#include <memory>

#include "core/views/streamed_answer.h"
#include "ui/pages/serve/model_host.h"
#include "ui/theme/table_model.h"
#include "ui/theme/widgets.h"

class QComboBox;
class QPlainTextEdit;
class QStackedWidget;
class QTextEdit;

namespace mw::ui {

// One answer as it is generated, as text or as a table of its tokens with probabilities.
class AnswerPane : public QWidget {
  Q_OBJECT
 public:
  AnswerPane(const QString& name, QWidget* parent);
  void set_title(const QString& title) { title_->setText(title); }
  // Shows a new answer from its beginning. Shows the error if the model refuses the request.
  void ask(std::shared_ptr<jobs::ModelServer> model, serve::GenerationRequest request);
  void stop();
  void clear();
  void show_frame();  // takes what was generated
  bool is_answering() const { return answer_ && !answer_->has_ended(); }
  const views::StreamedAnswer* answer() const { return answer_.get(); }  // null: none
  QString text() const;                                                  // as displayed
  QString status() const;
  QString tooltip_at(int position) const;  // of the token at a character of the text
  TableModel<views::AnswerToken>& tokens() { return tokens_; }
  void show_tokens(bool on);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void append(const views::AnswerToken& token, const std::string& text);

  std::unique_ptr<views::StreamedAnswer> answer_;
  TableModel<views::AnswerToken> tokens_;
  std::vector<int> ends_;  // of each token in the text
  size_t shown_bytes_ = 0;
  QLabel* title_;
  ElidedLabel* status_;
  QStackedWidget* stack_;
  QTextEdit* text_;
};

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
