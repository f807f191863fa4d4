// SPDX-License-Identifier: GPL-3.0-or-later
// The document as editable JSON text. Parses every edit and marks errors; invalid text is kept. GUI thread.
#pragma once
#include <QPlainTextEdit>
#include <QSyntaxHighlighter>
#include <QTimer>

#include "core/experiment/schema.h"
#include "ui/session/document.h"

class QCompleter;
class QFrame;
class QLabel;
class QStandardItemModel;

namespace mw::ui {

class JsonHighlighter : public QSyntaxHighlighter {
 public:
  using QSyntaxHighlighter::QSyntaxHighlighter;

 protected:
  void highlightBlock(const QString& text) override;
};

// Text editor with line numbers, a tinted error line and suggestions of keys and values, which appear while a word is
// typed and with Ctrl+Space. Undo belongs to the document.
class JsonEdit : public QPlainTextEdit {
  Q_OBJECT
 public:
  explicit JsonEdit(QWidget* parent);
  void mark_line(int line);  // 1-based; 0 none
  void paint_gutter(QPaintEvent* event);
  int gutter_width() const;
  QCompleter* completer() const { return completer_; }

 protected:
  bool event(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void suggest();
  void insert_suggestion(int row);
  QWidget* gutter_;
  QCompleter* completer_;
  QStandardItemModel* suggested_;
  experiment::JsonCompletion completion_;  // whose suggestions are shown
  int marked_ = 0;
};

class JsonView : public QWidget {
  Q_OBJECT
 public:
  JsonView(Document& document, QWidget* parent = nullptr);
  JsonEdit* editor() { return edit_; }
  void restyle();                              // after a theme change
  void focus_place(const std::string& place);  // position of a JSON error ("3:14") or a dotted key

 private:
  void refresh();
  Document& document_;
  JsonEdit* edit_;
  JsonHighlighter* highlighter_;
  QFrame* notice_;
  QLabel* notice_text_;
  QTimer idle_;  // a pause in typing ends the undo step
  bool writing_ = false;
};

}  // namespace mw::ui
