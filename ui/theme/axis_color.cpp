// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/axis_color.h"

#include <QApplication>
#include <QPainter>
#include <QRegularExpression>
#include <QTextLayout>
#include <algorithm>
#include <cmath>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

// Relative luminance of WCAG 2.
double luminance(const QColor& color) {
  const auto linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF());
}

double contrast(const QColor& a, const QColor& b) {
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

}  // namespace

QColor axis_color(const QString& axis) {
  static const QStringList kKnown{u"tp"_s, u"fsdp"_s, u"data"_s, u"ep"_s};
  if (const auto at = kKnown.indexOf(axis); at >= 0) return theme().series(static_cast<int>(at));
  unsigned sum = 0;
  for (const QChar c : axis) sum = 31 * sum + c.unicode();
  return theme().series(4 + static_cast<int>(sum % 3));
}

QColor axis_text_color(const QString& axis) {
  constexpr double kReadable = 4.8;  // above the 4.5 of WCAG, because alternate rows are a little darker
  QColor color = axis_color(axis);
  for (int i = 0; i < 10 && contrast(color, theme().panel) < kReadable; ++i) color = mix(color, theme().text, 0.12);
  return color;
}

void AxisTextDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QStyleOptionViewItem cell = option;
  initStyleOption(&cell, index);
  const QWidget* view = option.widget;
  QStyle& style = view ? *view->style() : *QApplication::style();
  const QRect room = style.subElementRect(QStyle::SE_ItemViewItemText, &cell, view).adjusted(3, 0, -3, 0);
  QTextLayout layout(cell.fontMetrics.elidedText(cell.text, Qt::ElideRight, room.width()), cell.font);
  cell.text.clear();
  style.drawControl(QStyle::CE_ItemViewItem, &cell, painter, view);
  static const QRegularExpression kName(u"[A-Za-z_]\\w*"_s);
  QList<QTextLayout::FormatRange> ranges;
  const bool plain = !(cell.state & QStyle::State_Enabled) || index.data(Qt::ForegroundRole).isValid();
  for (auto names = kName.globalMatch(layout.text()); !plain && names.hasNext();) {
    const QRegularExpressionMatch name = names.next();
    QTextCharFormat format;
    format.setForeground(axis_text_color(name.captured()));
    ranges.push_back({static_cast<int>(name.capturedStart()), static_cast<int>(name.capturedLength()), format});
  }
  layout.setFormats(ranges);
  layout.beginLayout();
  QTextLine line = layout.createLine();
  line.setLineWidth(1e6);
  layout.endLayout();
  const QVariant color = index.data(Qt::ForegroundRole);
  painter->setPen(color.isValid() ? color.value<QColor>()
                  : plain         ? cell.palette.color(QPalette::Disabled, QPalette::Text)
                                  : theme().text);
  layout.draw(painter, QPointF(room.left(), room.top() + (room.height() - line.height()) / 2));
}

}  // namespace mw::ui
