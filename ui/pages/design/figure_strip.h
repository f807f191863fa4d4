// SPDX-License-Identifier: GPL-3.0-or-later
// The headline figures of the plan in one row: name, value, and below it the difference from another design, else a
// note. GUI thread.
#pragma once
#include <QWidget>

#include "core/views/design_view.h"

namespace mw::ui {

class FigureStrip : public QWidget {
  Q_OBJECT
 public:
  explicit FigureStrip(QWidget* parent = nullptr);
  // Shows the lines that have a headline. `baseline`: the lines to compare with, empty: none.
  void show(std::vector<views::PlanLine> lines, const std::vector<views::PlanLine>& baseline, bool stale);
  QString text() const;  // "Memory 20.0 GiB, Step 8.60 s +12 %"
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {200, sizeHint().height()}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF cell(size_t index) const;
  std::vector<views::PlanLine> lines_;
  QStringList changes_;
  bool stale_ = false;
};

}  // namespace mw::ui
