// SPDX-License-Identifier: GPL-3.0-or-later
// One answer of the playground as it is generated, as text or as a table of its tokens with probabilities. GUI thread.
#pragma once
#include <QWidget>
#include <memory>

#include "core/views/streamed_answer.h"
#include "ui/theme/table_model.h"

class QLabel;
class QStackedWidget;
class QTextEdit;

namespace mw::ui {

class ElidedLabel;

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

}  // namespace mw::ui
