// SPDX-License-Identifier: GPL-3.0-or-later
// Building blocks of the dialogs that run one task, from top to bottom: description, fields, result, progress, buttons.
// GUI thread.
#pragma once
#include <QTextEdit>

class QFormLayout;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QVBoxLayout;

namespace mw::ui {

QVBoxLayout* dialog_column(QWidget& dialog, int least_width);  // pixels; grows with its content
QLabel* add_description(QVBoxLayout& column);                  // a short description

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

 private:
  void fit();
};
ResultText* add_result(QVBoxLayout& column, const QString& name);

// A thin progress bar that keeps its space while it is hidden. Indeterminate until it gets a range.
QProgressBar* add_progress(QVBoxLayout& column, const QString& name);

struct DialogButtons {
  QPushButton *cancel, *confirm;  // confirm: the default button
};
DialogButtons add_buttons(QVBoxLayout& column, const QString& cancel, const QString& confirm);

// A line edit for a folder and a button that opens a folder dialog.
struct FolderRow {
  QLineEdit* line;
  QPushButton* choose;
};
FolderRow add_folder(QFormLayout& form, const QString& name, const QString& placeholder, QWidget& dialog);

}  // namespace mw::ui
