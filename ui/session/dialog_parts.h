// SPDX-License-Identifier: GPL-3.0-or-later
// Building blocks of the dialogs that run one task, from top to bottom: description, fields, result, progress, buttons;
// and questions. GUI thread.
#pragma once
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPointer>
#include <QProgressBar>
#include <QPushButton>
#include <QTextEdit>
#include <functional>
#include <vector>

namespace mw::ui {

class BackgroundWork;

// Shows the result. GrowsWithContent with its lines up to a limit and is hidden while it is empty. Paths wrap at any
// character and can be selected and copied.
class ResultText : public QTextEdit {
  Q_OBJECT
 public:
  ResultText(const QString& name, QWidget* parent);
  enum class Tone { plain, bad };
  void show_text(const QString& text, Tone tone = Tone::plain);
  QString text() const { return toPlainText(); }

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  void fit();
};

// A thin progress bar that keeps its space while it is hidden. Indeterminate until it gets a range.
QProgressBar* add_progress(QVBoxLayout& column, const QString& name);

// A dialog that runs one task. A derived class adds its fields to column_, then the rows of the task below them.
class TaskDialog : public QDialog {
  Q_OBJECT
 public slots:
  void reject() override;  // cancels the followed work, and closes the dialog if there is none

 protected:
  // least_width: pixels; the dialog grows with its content.
  TaskDialog(const QString& title, const QString& object_name, int least_width, QWidget* parent);
  struct TaskRows {
    QString result, progress;  // accessible names
    QString cancel, confirm;   // texts of the buttons; `cancel` calls reject(), without `confirm` there is no other
    int stretch = 1;           // of the space above the buttons
  };
  void add_task_rows(const TaskRows& rows);
  // The progress bar shows the percentage of the work while it is busy. Call it after add_task_rows().
  void follow(BackgroundWork& work);

  QVBoxLayout* column_;
  QLabel* description_;
  ResultText* result_ = nullptr;
  QProgressBar* progress_ = nullptr;
  QPushButton *cancel_ = nullptr, *confirm_ = nullptr;  // confirm_: the default button, or null

 private:
  BackgroundWork* work_ = nullptr;
};

// Adds a field whose accessible name is its label.
template <class Field>
Field* add_field(QFormLayout& form, const QString& name, Field* field, const QString& tooltip = {}) {
  field->setAccessibleName(name);
  if (!tooltip.isEmpty()) field->setToolTip(tooltip);
  form.addRow(name, field);
  return field;
}

// A line edit for a folder and a button that opens a folder dialog.
struct FolderRow {
  QLineEdit* line;
  QPushButton* choose;
};
FolderRow add_folder(QFormLayout& form, const QString& name, const QString& placeholder, QWidget& dialog);

struct QuestionAnswer {
  QString name;  // object name of the button
  QString text;  // a verb
  QMessageBox::ButtonRole role;
  std::function<void()> chosen{};  // may be empty
};

// Asks window-modal questions with one button per answer, at most one at a time. Does not block the caller.
class PendingQuestion {
 public:
  explicit PendingQuestion(QWidget& window) : window_(window) {}
  bool raise();  // false: there is none
  // The first answer is the default (Enter). Escape and closing the box give the answer with RejectRole. The box
  // deletes itself afterwards.
  void ask(const QString& name, const QString& text, const QString& details,
           const std::vector<QuestionAnswer>& answers);
  void reject();

 private:
  QWidget& window_;
  QPointer<QMessageBox> box_;
};

}  // namespace mw::ui
