// SPDX-License-Identifier: GPL-3.0-or-later
// Ctrl+K: type a few letters of any command, setting or run. Closes on Escape or when it loses the focus.
#pragma once
#include <QFrame>
#include <QPointer>
#include <functional>
#include <vector>

class QLineEdit;
class QListView;
class QStandardItemModel;

namespace mw::ui {

struct PaletteEntry {
  QString text{}, detail{};  // "Run", "F5"; "Go to Rank", "lora.rank"
  std::function<void()> run{};
  bool enabled = true;
};

// How well `letters` fit `text` in order; negative: not at all. Word beginnings and runs of letters count more.
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
  QLineEdit* line_;
  QListView* list_;
  QStandardItemModel* model_;
  std::vector<PaletteEntry> entries_;
  QPointer<QWidget> before_;  // had the focus
};

}  // namespace mw::ui
