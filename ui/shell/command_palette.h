// SPDX-License-Identifier: GPL-3.0-or-later
// Command palette (Ctrl+K) that finds commands, settings and runs by a few letters. Closes on Escape or when it loses
// the focus. GUI thread.
#pragma once
#include <QFrame>
#include <QPointer>

#include "ui/session/workspace.h"

class QLineEdit;
class QListView;
class QStandardItemModel;

namespace mw::ui {

// Score of `letters` occurring in `text` in order; negative: no match. Beginnings of words and runs of letters score
// higher.
int fuzzy_score(const QString& letters, const QString& text);

class CommandPalette : public QFrame {
  Q_OBJECT
 public:
  explicit CommandPalette(QWidget* window);
  void open(std::vector<PaletteEntry> entries);
  QLineEdit& line() { return *line_; }
  int shown() const;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void filter(const QString& letters);
  void choose();
  void step(int rows);
  void place();
  QLineEdit* line_;
  QListView* list_;
  QStandardItemModel* model_;
  std::vector<PaletteEntry> entries_;
  QPointer<QWidget> previous_focus_;  // previous focus widget
};

}  // namespace mw::ui
