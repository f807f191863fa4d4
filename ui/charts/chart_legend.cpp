// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/chart_legend.h"

#include <algorithm>

#include "ui/charts/chart_strokes.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {

std::vector<LegendEntry> legend_entries(const ChartAxes& axes) {
  const ChartContent& content = axes.content;
  std::vector<LegendEntry> out;
  const auto reading = axes.link.reading();
  for (const ChartLine& line : content.lines) {
    if (!line.raw || line.raw->empty()) continue;
    const views::Series& s = line.smooth && !line.smooth->empty() ? *line.smooth : *line.raw;
    const size_t at = reading ? s.nearest(*reading).value_or(0) : s.size() - 1;
    out.push_back({.name = line.name,
                   .color = line.color,
                   .origin = line.origin,
                   .value = value_text(s[at].y, content.options.quantity),
                   .marks = line.marks,
                   .group = line.group});
  }
  if (!content.stack.at) return out;
  const auto values = !reading && content.stack.overall ? content.stack.overall()
                                                        : content.stack.at(reading.value_or(axes.link.data().high));
  if (content.options.rows) {  // all layers, so that the legend stays while the cursor moves
    for (size_t i = 0; i < content.stack.layers.size(); ++i)
      out.push_back({.name = content.stack.layers[i].first,
                     .color = content.stack.layers[i].second,
                     .value = value_text(values[i], content.options.quantity)});
    return out;
  }
  double total = 0;
  for (const double v : values) total += v;
  const LineOrigin origin = content.stack.origin_at(reading.value_or(axes.link.data().high));
  if (!values.empty())
    out.push_back({origin == LineOrigin::predicted ? ChartLegend::tr("predicted total") : ChartLegend::tr("total"),
                   {},
                   origin,
                   value_text(total, content.options.quantity)});
  for (size_t i = content.stack.layers.size(); i-- > 0;)  // in visual order: the top layer first
    if (i < values.size() && values[i] > 0)
      out.push_back({content.stack.layers[i].first, content.stack.layers[i].second, LineOrigin::measured,
                     value_text(values[i], content.options.quantity)});
  return out;
}

const LegendEntry* ChartLegend::entry_at(QPointF at) const {
  const auto found = std::ranges::find_if(entries_, [at](const LegendEntry& e) { return e.at.contains(at); });
  return found == entries_.end() ? nullptr : &*found;
}

// Returns false if some entries did not fit even without names and were left out.
bool ChartLegend::place(std::vector<LegendEntry>& entries, int most, Names names, int& row) const {
  const QFontMetricsF metrics(small_font());
  double x = title_width() + 10;
  row = 0;
  const auto end = [&] { return limit(row); };
  for (LegendEntry& e : entries) {
    const bool filled = content_.stack.sample && e.color.isValid(), layer = filled && !content_.options.rows;
    if (layer) e.shown = false;
    const double mark = filled ? 13 : e.color.isValid() ? 16 : 0;
    const double value = layer ? 0 : metrics.horizontalAdvance(e.value);
    e.named = names == Names::where_they_fit || !e.color.isValid();
    double need = mark + (e.named ? metrics.horizontalAdvance(e.name) + (layer ? 0 : 5) : 0) + value;
    if (x + need > end() && row + 1 < most) {
      ++row;
      x = 10;
    }
    if (x + need > end() && !filled) {  // the name does not fit: mark and value only
      e.named = false;
      need = mark + value;
    }
    if (x + need > end()) {
      entries.resize(static_cast<size_t>(&e - entries.data()));
      return false;
    }
    e.at = QRectF(x, 4 + 18 * row, need, 18);
    x = e.at.right() + 12;
  }
  return true;
}

// Buttons are in the first row.
void ChartLegend::fold(int all) {
  const auto text = [&] { return u"+%1"_s.arg(all - static_cast<int>(entries_.size())); };
  const QFontMetricsF metrics(small_font());
  folded_at_ = {};
  while (static_cast<int>(entries_.size()) < all) {
    const QRectF last = entries_.empty() ? QRectF(title_width(), 4, 0, 18) : entries_.back().at;
    folded_at_ = QRectF(last.right() + 10, last.top(), metrics.horizontalAdvance(text()) + 2, 18);
    if (folded_at_.right() <= limit(static_cast<int>(last.top()) / 18)) break;
    folded_at_ = {};
    if (entries_.empty()) break;
    entries_.pop_back();
  }
}

QStringList ChartLegend::texts() const {
  QStringList texts;
  for (const LegendEntry& e : legend_entries(axes_)) texts << QString(e.name + u' ' + e.value);
  return texts;
}

QString ChartLegend::folded() const {
  return texts().mid(static_cast<int>(entries_.size())).join(u'\n');
}

bool ChartLegend::lay_out(double header_end) {
  header_end_ = header_end;
  const auto names = [](const std::vector<LegendEntry>& entries) {
    QStringList all;
    for (const LegendEntry& e : entries) all << e.name;
    return all;
  };
  const std::vector<LegendEntry> all = legend_entries(axes_);
  if (names(all) != names_) rows_ = 1;
  names_ = names(all);
  const bool many = content_.stack.sample || content_.lines.size() > 1;
  const bool very_many = content_.stack.shape == Shape::bars || content_.lines.size() > 4;
  const int most = content_.options.rows                    ? 3
                   : !many || axes_.size.height() <= 170    ? 1
                   : very_many && axes_.size.height() > 190 ? 3
                                                            : 2;
  std::vector<LegendEntry> entries = all;
  int row = 0;
  if (!place(entries, most, Names::where_they_fit, row) && !content_.stack.sample) {
    // If not all names fit, shows none.
    std::vector<LegendEntry> nameless = all;
    int rows = 0;
    if (place(nameless, most, Names::none, rows)) {
      entries = std::move(nameless);
      row = rows;
    }
  }
  entries_ = std::move(entries);
  fold(static_cast<int>(all.size()));
  // The number of rows only grows while the entries are the same; otherwise the chart would jump under a moving cursor.
  if (row + 1 <= rows_ && rows_ <= most) return false;
  rows_ = row + 1;
  return true;
}

double ChartLegend::title_width() const {
  const QFont bold = demi_bold(small_font());
  double width = 10 + QFontMetricsF(bold).horizontalAdvance(content_.options.title);
  if (!content_.options.unit.isEmpty())
    width += 5 + QFontMetricsF(small_font()).horizontalAdvance(content_.options.unit);
  return width;
}

void ChartLegend::paint(QPainter& painter, bool with_caption) const {
  const Theme& t = theme();
  const QFont bold = demi_bold(small_font());
  painter.setFont(bold);
  painter.setPen(t.text);
  painter.drawText(QPointF(10, 17),
                   QFontMetricsF(bold).elidedText(content_.options.title, Qt::ElideRight, header_end_ - 14));
  painter.setFont(small_font());
  const QFontMetricsF metrics(small_font());
  if (with_caption && !content_.caption.isEmpty()) {
    painter.setPen(content_.notes.empty() ? t.muted : t.bad);
    const double below =
        content_.options.rows && !content_.levels.empty() ? ChartAxes::kCaption : 0;  // labels of levels, see area()
    const QRectF row(10, axes_.area().top() - ChartAxes::kTickOverhang - ChartAxes::kCaption - below - 1,
                     axes_.size.width() - 20, ChartAxes::kCaption);
    painter.drawText(row, Qt::AlignLeft | Qt::AlignVCenter,
                     metrics.elidedText(content_.caption, Qt::ElideRight, row.width()));
  }
  painter.setPen(t.muted);
  const double left = title_width() - metrics.horizontalAdvance(content_.options.unit);
  painter.drawText(QPointF(left, 17),
                   metrics.elidedText(content_.options.unit, Qt::ElideRight, header_end_ - 6 - left));
  if (!folded_at_.isEmpty())
    painter.drawText(folded_at_, Qt::AlignVCenter,
                     u"+%1"_s.arg(names_.size() - static_cast<qsizetype>(entries_.size())));
  for (const LegendEntry& entry : entries_) paint_entry(painter, entry);
}

void ChartLegend::paint_entry(QPainter& painter, const LegendEntry& e) const {
  const Theme& t = theme();
  const QFontMetricsF metrics(small_font());
  const bool off = content_.is_hidden(e.name);
  const double base = e.at.top() + 13, middle = e.at.top() + 9;
  double x = e.at.left();
  if (e.color.isValid() && content_.stack.sample) {
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
  x += !e.color.isValid() ? 0 : content_.stack.sample ? 13 : 16;
  if (e.named) {
    painter.setPen(off ? t.faint : t.muted);
    painter.drawText(QPointF(x, base), e.name);
    x += metrics.horizontalAdvance(e.name) + 5;
  }
  if (!e.shown) return;
  painter.setPen(off ? t.faint : t.text);
  painter.drawText(QPointF(x, base), e.value);
}

}  // namespace mw::ui
