// SPDX-License-Identifier: GPL-3.0-or-later
// What the dialogs that do one thing are made of, from top to bottom: what it is about, fields, what came of it, how
// far it is, the buttons. GUI thread.
#pragma once
#include <QTextEdit>

class QFormLayout;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QVBoxLayout;

namespace mw::ui {

QVBoxLayout* dialog_column(QWidget& dialog, int least_width);  // pixels; it grows with what is in it
QLabel* add_about(QVBoxLayout& column);                        // a few lines

// What came of it: as high as its lines up to some, hidden while there are none. Paths break anywhere, and can be
// selected and copied as they are.
class SaidText : public QTextEdit {
  Q_OBJECT
 public:
  SaidText(const QString& name, QWidget* parent);
  enum class Tone { plain, bad };
  void say(const QString& text, Tone tone = Tone::plain);
  QString text() const { return toPlainText(); }

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void fit();
};
SaidText* add_said(QVBoxLayout& column, const QString& name);

// A thin bar that keeps its room while it is hidden. Of unknown length until it is given a range.
QProgressBar* add_progress(QVBoxLayout& column, const QString& name);

struct DialogButtons {
  QPushButton *cancel, *go;  // go: what Enter presses
};
DialogButtons add_buttons(QVBoxLayout& column, const QString& cancel, const QString& go);

// A line for a folder, and a button that asks for one.
struct FolderRow {
  QLineEdit* line;
  QPushButton* choose;
};
FolderRow add_folder(QFormLayout& form, const QString& name, const QString& placeholder, QWidget& dialog);

}  // namespace mw::ui
