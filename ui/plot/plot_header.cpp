// SPDX-License-Identifier: GPL-3.0-or-later
// Title and legend of a Plot, with the values at the cursor.
#include <QPainter>
#include <algorithm>

#include "ui/plot/plot.h"
#include "ui/plot/plot_strokes.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {

// Returns false if some entries did not fit even without names and were left out.
bool Plot::place_legend(std::vector<LegendEntry>& entries, int most, Names names, int& row) const {
  const QFontMetricsF metrics(small_font());
  double x = title_width() + 10;
  row = 0;
  const auto limit = [&] { return row == 0 ? header_end() - 6 : width() - 10.0; };  // buttons are in the first row
  for (LegendEntry& e : entries) {
    const bool layer = stack_.sample && e.color.isValid();
    if (layer) e.shown = false;
    const double mark = layer ? 13 : e.color.isValid() ? 16 : 0;
    const double value = layer ? 0 : metrics.horizontalAdvance(e.value);
    e.named = names == Names::where_they_fit || !e.color.isValid();
    double need = mark + (e.named ? metrics.horizontalAdvance(e.name) + (layer ? 0 : 5) : 0) + value;
    if (x + need > limit() && row + 1 < most) {
      ++row;
      x = 10;
    }
    if (x + need > limit() && !layer) {  // the name does not fit: mark and value only
      e.named = false;
      need = mark + value;
    }
    if (x + need > limit()) {
      entries.resize(static_cast<size_t>(&e - entries.data()));
      return false;
    }
    e.at = QRectF(x, 4 + 18 * row, need, 18);
    x = e.at.right() + 12;
  }
  return true;
}

void Plot::lay_out_legend() {
  const auto names = [](const std::vector<LegendEntry>& entries) {
    QStringList all;
    for (const LegendEntry& e : entries) all << e.name;
    return all;
  };
  const std::vector<LegendEntry> all = legend();
  if (names(all) != legend_names_) legend_rows_ = 1;
  legend_names_ = names(all);
  const bool many = stack_.sample || lines_.size() > 1;
  const bool very_many = stack_.shape == Shape::bars || lines_.size() > 4;
  const int most = !many || height() <= 170 ? 1 : very_many && height() > 190 ? 3 : 2;
  std::vector<LegendEntry> entries = all;
  int row = 0;
  if (!place_legend(entries, most, Names::where_they_fit, row) && !stack_.sample) {
    // If not all names fit, shows none.
    std::vector<LegendEntry> nameless = all;
    int rows = 0;
    if (place_legend(nameless, most, Names::none, rows)) {
      entries = std::move(nameless);
      row = rows;
    }
  }
  legend_ = std::move(entries);
  // The number of rows only grows while the entries are the same; otherwise the plot would jump under a moving cursor.
  if (row + 1 > legend_rows_ || legend_rows_ > most) {
    legend_rows_ = row + 1;
    stale_ = true;
  }
}

double Plot::title_width() const {
  QFont bold = small_font();
  bold.setWeight(QFont::DemiBold);
  double width = 10 + QFontMetricsF(bold).horizontalAdvance(options_.title);
  if (!options_.unit.isEmpty()) width += 5 + QFontMetricsF(small_font()).horizontalAdvance(options_.unit);
  return width;
}

void Plot::paint_header(QPainter& painter) const {
  const Theme& t = theme();
  QFont bold = small_font();
  bold.setWeight(QFont::DemiBold);
  painter.setFont(bold);
  painter.setPen(t.text);
  painter.drawText(QPointF(10, 17), options_.title);
  painter.setFont(small_font());
  const QFontMetricsF metrics(small_font());
  if (!caption_.isEmpty() && !table_shown()) {
    painter.setPen(notes_.empty() ? t.muted : t.bad);
    const QRectF row(10, area().top() - kCaption - 1, width() - 20, kCaption);
    painter.drawText(row, Qt::AlignLeft | Qt::AlignVCenter, metrics.elidedText(caption_, Qt::ElideRight, row.width()));
  }
  painter.setPen(t.muted);
  painter.drawText(QPointF(title_width() - metrics.horizontalAdvance(options_.unit), 17), options_.unit);
  for (const LegendEntry& e : legend_) {
    const bool off = hidden(e.name);
    const double base = e.at.top() + 13, middle = e.at.top() + 9;
    double x = e.at.left();
    if (e.color.isValid() && stack_.sample) {
      painter.fillRect(QRectF(x, middle - 4, 9, 9), off ? t.line : e.color);
    } else if (e.color.isValid()) {
      painter.setPen(QPen(off ? t.line : e.color, 2, pen_style(e.origin)));
      painter.drawLine(QPointF(x, middle), QPointF(x + 12, middle));
      if (e.marks != Marks::none) {
        painter.setPen(QPen(t.panel, 1));
        painter.setBrush(off ? t.line : e.color);
        paint_mark(painter, e.marks, QPointF(x + 6, middle));
      }
    }
    x += !e.color.isValid() ? 0 : stack_.sample ? 13 : 16;
    if (e.named) {
      painter.setPen(off ? t.faint : t.muted);
      painter.drawText(QPointF(x, base), e.name);
      x += metrics.horizontalAdvance(e.name) + 5;
    }
    if (!e.shown) continue;
    painter.setPen(off ? t.faint : t.text);
    painter.drawText(QPointF(x, base), e.value);
  }
}

}  // namespace mw::ui
