// SPDX-License-Identifier: GPL-3.0-or-later
// One or two horizontal bars of parts with a limit: predicted memory by category or seconds by kind. Hatched, because
// the values are predicted. GUI thread.
#pragma once
#include <QColor>
#include <QString>
#include <QWidget>
#include <vector>

namespace mw::ui {

struct BarPart {
  QString name;
  QColor color;
  double value = 0;
  QString text;  // the value with its unit
};
struct Bar {
  QString name{};  // "this", "pinned"; empty for a single bar
  std::vector<BarPart> parts{};
  double limit = 0;  // 0: none
  QString limit_text{};
};

class StackBar : public QWidget {
  Q_OBJECT
 public:
  explicit StackBar(QWidget* parent = nullptr);
  void show_bars(std::vector<Bar> bars, bool stale);
  const std::vector<Bar>& bars() const { return bars_; }
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {140, sizeHint().height()}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QString part_at(QPoint at) const;  // for the tooltip
  void paint_legend(QPainter& painter) const;
  double whole() const;
  QRectF bar_rect(std::size_t index) const;
  double label_width() const;
  std::vector<Bar> bars_;
  bool stale_ = false;
};

}  // namespace mw::ui
