// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/stack_bar.h"

#include <QPainter>
#include <algorithm>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {
constexpr double kBar = 16, kBarGap = 6, kLimitText = 15;
}

StackBar::StackBar(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void StackBar::show_bars(std::vector<Bar> bars, bool stale) {
  const bool taller = bars.size() != bars_.size();
  bars_ = std::move(bars);
  stale_ = stale;
  QStringList texts;
  for (const Bar& b : bars_) {
    QStringList parts;
    for (const BarPart& p : b.parts) parts << p.name + u' ' + p.text;
    texts << (b.name.isEmpty() ? QString() : QString(b.name + u": "_s)) + parts.join(u", "_s);
  }
  setAccessibleDescription(texts.join(u"; "_s));
  if (taller) updateGeometry();
  update();
}

QSize StackBar::sizeHint() const {
  const auto rows = static_cast<double>(std::max<std::size_t>(1, bars_.size()));
  return {240, static_cast<int>(kLimitText + rows * kBar + (rows - 1) * kBarGap + 2)};
}

double StackBar::whole() const {
  double most = 0;
  for (const Bar& b : bars_) {
    double sum = 0;
    for (const BarPart& p : b.parts) sum += p.value;
    most = std::max({most, sum, b.limit});
  }
  return most;
}

double StackBar::label_width() const {
  double width = 0;
  for (const Bar& b : bars_)
    if (!b.name.isEmpty()) width = std::max(width, QFontMetricsF(small_font()).horizontalAdvance(b.name) + 8);
  return width;
}

QRectF StackBar::bar_rect(std::size_t index) const {
  const double left = label_width();
  return {left, kLimitText + static_cast<double>(index) * (kBar + kBarGap), width() - left - 1, kBar};
}

void StackBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setFont(small_font());
  const Theme& t = theme();
  const double all = whole();
  for (std::size_t i = 0; i < bars_.size(); ++i) {
    const QRectF r = bar_rect(i);
    painter.setPen(t.muted);
    painter.drawText(QRectF(0, r.top(), r.left() - 6, r.height()), Qt::AlignLeft | Qt::AlignVCenter, bars_[i].name);
    painter.fillRect(r, mix(t.panel, t.text, 0.08));
    if (all <= 0) continue;
    painter.setOpacity(stale_ ? 0.45 : 1);
    double x = r.left();
    for (const BarPart& p : bars_[i].parts) {
      const QRectF part(x, r.top(), p.value / all * r.width(), r.height());
      painter.fillRect(part, mix(t.panel, p.color, 0.55));
      painter.fillRect(part, QBrush(p.color, Qt::BDiagPattern));
      x += part.width();
    }
    painter.setOpacity(1);
    if (bars_[i].limit <= 0) {
      if (i == 0) paint_legend(painter);
      continue;
    }
    const double at = std::min(r.left() + bars_[i].limit / all * r.width(), r.right() - 2);
    painter.fillRect(QRectF(at, r.top() - 2, 2, r.height() + 4), t.bad);
    if (i > 0 && bars_[i].limit_text == bars_[0].limit_text) continue;
    painter.setPen(t.bad);
    painter.drawText(QRectF(0, r.top() - kLimitText, at + 2, kLimitText - 1), Qt::AlignRight | Qt::AlignVCenter,
                     bars_[i].limit_text);
  }
}

// Legend of the parts, in the space of a limit.
void StackBar::paint_legend(QPainter& painter) const {
  const QFontMetricsF metrics(painter.font());
  double x = bar_rect(0).left();
  for (const BarPart& p : bars_[0].parts) {
    painter.fillRect(QRectF(x, 4, 8, 8), p.color);
    const QString text = p.name + u' ' + p.text;
    painter.setPen(theme().text);
    painter.drawText(QRectF(x + 12, 0, metrics.horizontalAdvance(text) + 2, kLimitText), Qt::AlignVCenter, text);
    x += 12 + metrics.horizontalAdvance(text) + 12;
  }
}

QString StackBar::part_at(QPoint at) const {
  for (std::size_t i = 0; i < bars_.size(); ++i) {
    const QRectF r = bar_rect(i);
    if (!r.contains(at)) continue;
    double x = r.left();
    for (const BarPart& p : bars_[i].parts) {
      x += whole() > 0 ? p.value / whole() * r.width() : 0;
      if (at.x() <= x) return tr("%1: %2, predicted").arg(p.name, p.text);
    }
  }
  return {};
}

bool StackBar::event(QEvent* event) {
  return show_tooltip(event, *this, [this](QPoint at) { return part_at(at); }) || QWidget::event(event);
}

}  // namespace mw::ui
