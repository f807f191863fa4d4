// SPDX-License-Identifier: GPL-3.0-or-later
// Painting over the picture of Qt Charts: header with legend, labels of levels and limits, cursor, notes.
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <map>

#include "ui/charts/chart.h"
#include "ui/charts/chart_strokes.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {

void Chart::paint_annotations(QPainter& painter, const QRectF& area) const {
  painter.setFont(small_font());
  painter.setRenderHint(QPainter::Antialiasing);
  if (options_.rows) return paint_rows(painter, area);
  for (const ChartLine& line : lines_)
    if (!hidden(line.name)) paint_flags(painter, area, line);
  paint_cut_bars(painter, area);
  paint_levels(painter, area);
  paint_limits(painter, area);
  paint_notes(painter, area);
}

// An arrow above bars that end beyond the chart.
void Chart::paint_cut_bars(QPainter& painter, const QRectF& area) const {
  painter.setPen(theme().bad);
  for (const double x : cut_bars_)
    painter.drawText(QRectF(to_x(area, x) - 20, area.top(), 40, 14), Qt::AlignCenter, u"\u2191"_s);
}

void Chart::paint_flags(QPainter& painter, const QRectF& area, const ChartLine& line) const {
  for (const ChartFlag& flag : line.flags) {
    const QPointF at(to_x(area, flag.x), to_y(area, flag.y));
    if (!area.adjusted(-1, -1, 1, 1).contains(at)) continue;
    painter.setPen(QPen(flag.color, 1.8));
    painter.setBrush(Qt::NoBrush);
    painter.drawEllipse(at, 6.5, 6.5);
    painter.drawText(QRectF(at.x() + 5, at.y() - 17, 10, 14), Qt::AlignCenter, u"!"_s);
  }
}

void Chart::paint_notes(QPainter& painter, const QRectF& area) const {
  std::map<double, int> above;  // several at one position are stacked
  for (const ChartNote& note : notes_) {
    const double x = to_x(area, note.x);
    if (x < area.left() - 1 || x > area.right() + 1) continue;
    const QPointF at(x, area.bottom() - 8 - 12 * above[note.x]++);
    painter.setPen(Qt::NoPen);
    painter.setBrush(faded(theme().panel, 0.88));
    painter.drawEllipse(at, 6, 6);
    painter.setPen(QPen(note.color, 1.8, Qt::SolidLine, Qt::RoundCap));
    painter.drawLine(at + QPointF(-3, -3), at + QPointF(3, 3));
    painter.drawLine(at + QPointF(-3, 3), at + QPointF(3, -3));
  }
}

// --- Levels, limits, cursor and readout ---

// Labels are beside their line where there is room, or in the upper left corner if the level is above the chart.
std::vector<QRectF> Chart::level_labels(const QRectF& area) const {
  const QFontMetricsF metrics(small_font());
  constexpr double kHeight = 15, kStep = kHeight + 2;
  std::vector<QRectF> labels;
  const auto free = [&](const QRectF& at, const LevelLine& own) {
    if (at.top() < area.top() || at.bottom() > area.bottom()) return false;
    for (const QRectF& other : labels)
      if (at.intersects(other)) return false;
    for (const LevelLine& other : levels_)
      if (&other != &own && other.value <= y_.high && at.top() - 1 < to_y(area, other.value) &&
          to_y(area, other.value) < at.bottom() + 1)
        return false;
    return true;
  };
  double edge = area.top() + 2;
  for (const LevelLine& level : levels_) {
    const double w = metrics.horizontalAdvance(level_text(level)) + 8, y = to_y(area, level.value);
    const double left = area.left() + 4, right = area.right() - w - 2;
    if (level.value > y_.high) {
      labels.emplace_back(left, edge, w, kHeight);
      edge += kStep;
      continue;
    }
    const bool bars = stack_.shape == Shape::bars;  // bars are low at the left
    const double near = bars ? left : right, far = bars ? right : left;
    QRectF best(near, y - kStep >= area.top() ? y - kStep : y + 2, w, kHeight);
    std::vector<QPointF> places{{near, y - kStep}, {near, y + 2}, {far, y - kStep}, {far, y + 2}};
    for (double below = y + 2; below < area.bottom(); below += 3) places.emplace_back(near, below);
    for (const QPointF& at : places)
      if (const QRectF box(at, best.size()); free(box, level)) {
        best = box;
        break;
      }
    labels.push_back(best);
  }
  return labels;
}

QString Chart::level_text(const LevelLine& level) const {
  const QString text = level.name + u' ' + value_text(level.value, options_.quantity);
  return level.value > y_.high ? text + u" \u2191"_s : text;
}

void Chart::paint_levels(QPainter& painter, const QRectF& area) const {
  const std::vector<QRectF> labels = level_labels(area);
  for (size_t i = 0; i < levels_.size(); ++i) {
    painter.fillRect(labels[i], faded(theme().panel, 0.78));
    painter.setPen(levels_[i].color);
    painter.drawText(labels[i], Qt::AlignCenter, level_text(levels_[i]));
  }
}

void Chart::paint_limits(QPainter& painter, const QRectF& area) const {
  const QFontMetricsF metrics(painter.font());
  double top = area.top() + 2;
  for (const LevelLine& limit : limits_) {
    const bool beyond = limit.value > link_.range().high;
    if (limit.value < link_.range().low) continue;
    QString text =
        limit.name + u' ' + (limit.text.isEmpty() ? value_text(limit.value, link_.x_quantity()) : limit.text);
    if (beyond) text += u" \u2192"_s;
    const double x = std::round(to_x(area, limit.value)) + 0.5, w = metrics.horizontalAdvance(text) + 8;
    const double left = beyond ? area.right() - w : x + w + 2 < area.right() ? x + 2 : x - w - 2;
    const QRectF at(left, top, w, 15);
    painter.fillRect(at, faded(theme().panel, 0.78));
    painter.setPen(limit.color);
    painter.drawText(at, Qt::AlignCenter, text);
    top += 17;
  }
}

std::vector<Chart::LegendEntry> Chart::legend() const {
  std::vector<LegendEntry> out;
  const auto reading = link_.reading();
  for (const ChartLine& line : lines_) {
    if (!line.raw || line.raw->empty()) continue;
    const views::Series& s = line.smooth && !line.smooth->empty() ? *line.smooth : *line.raw;
    const size_t at = reading ? s.nearest(*reading).value_or(0) : s.size() - 1;
    out.push_back({.name = line.name,
                   .color = line.color,
                   .origin = line.origin,
                   .value = value_text(s[at].y, options_.quantity),
                   .marks = line.marks,
                   .group = line.group});
  }
  if (!stack_.at) return out;
  const auto values = !reading && stack_.overall ? stack_.overall() : stack_.at(reading.value_or(link_.data().high));
  if (options_.rows) {  // all layers, so that the legend stays while the cursor moves
    for (size_t i = 0; i < stack_.layers.size(); ++i)
      out.push_back({.name = stack_.layers[i].first,
                     .color = stack_.layers[i].second,
                     .value = value_text(values[i], options_.quantity)});
    return out;
  }
  double total = 0;
  for (const double v : values) total += v;
  const Origin origin = stack_.origin_at(reading.value_or(link_.data().high));
  if (!values.empty())
    out.push_back({origin == Origin::predicted ? tr("predicted total") : tr("total"),
                   {},
                   origin,
                   value_text(total, options_.quantity)});
  for (size_t i = stack_.layers.size(); i-- > 0;)  // in visual order: the top layer first
    if (i < values.size() && values[i] > 0)
      out.push_back({stack_.layers[i].first, stack_.layers[i].second, Origin::measured,
                     value_text(values[i], options_.quantity)});
  return out;
}

void Chart::paint_cursor(QPainter& painter, const QRectF& area) const {
  if (empty()) return;
  if (options_.rows) return paint_row_cursor(painter, area);
  const Theme& t = theme();
  const auto inside = [&](double x) { return x >= link_.range().low && x <= link_.range().high; };
  if (const auto head = link_.playhead(); head && inside(*head)) {
    const double x = to_x(area, *head);
    painter.setPen(QPen(t.accent, 1.5));
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
  }
  const auto reading = link_.reading();
  if (!reading || !inside(*reading)) return;
  const double x = std::round(to_x(area, *reading)) + 0.5;
  if (link_.cursor()) {
    painter.setPen(QPen(t.muted, 1, Qt::DotLine));
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
  }
  painter.setRenderHint(QPainter::Antialiasing);
  for (const ChartLine& line : lines_) {
    if (!line.raw || line.raw->empty() || hidden(line.name)) continue;
    const views::Series& s = line.smooth ? *line.smooth : *line.raw;
    const auto at = s.nearest(*reading);
    if (!at || std::isnan(s[*at].y)) continue;
    const QPointF p(to_x(area, s[*at].x), to_y(area, s[*at].y));
    if (!area.adjusted(-1, -1, 1, 1).contains(p)) continue;
    painter.setPen(QPen(t.panel, 1.2));
    painter.setBrush(line.color);
    painter.drawEllipse(p, 3.6, 3.6);
  }
  if (stack_.at && (stack_.shape == Shape::areas || link_.cursor())) paint_split(painter, area, x);
  painter.setFont(small_font());
  const QString text = link_.x_name() + u' ' + link_.x_text(*reading);
  const double w = QFontMetricsF(painter.font()).horizontalAdvance(text) + 12;
  const QRectF pill(std::clamp(x - w / 2, 2.0, std::max(2.0, width() - w - 2)), area.bottom() + 2, w, 16);
  painter.setPen(Qt::NoPen);
  painter.setBrush(link_.cursor() ? t.text : t.accent);
  painter.drawRoundedRect(pill, 8, 8);
  painter.setPen(link_.cursor() ? t.panel : t.accent_text);
  painter.drawText(pill, Qt::AlignCenter, text);
}

// The values of all layers beside the cursor.
void Chart::paint_split(QPainter& painter, const QRectF& area, double x) const {
  const Theme& t = theme();
  const auto entries = legend();
  if (entries.empty()) return;
  painter.setFont(small_font());
  const QFontMetricsF metrics(small_font());
  double name_width = 0, value_width = 0;
  for (const LegendEntry& e : entries) {
    name_width = std::max(name_width, metrics.horizontalAdvance(e.name));
    value_width = std::max(value_width, metrics.horizontalAdvance(e.value));
  }
  const double row = 16, w = name_width + value_width + 42, h = row * static_cast<double>(entries.size()) + 8;
  const bool right = x + 12 + w < area.right();
  const QRectF box(right ? x + 12 : x - 12 - w, std::max(4.0, area.center().y() - h / 2), w, h);
  painter.setPen(t.line);
  painter.setBrush(faded(t.panel, 0.95));
  painter.drawRoundedRect(box, 4, 4);
  double y = box.top() + 4;
  for (const LegendEntry& e : entries) {
    if (e.color.isValid()) painter.fillRect(QRectF(box.left() + 8, y + 4, 9, 9), e.color);
    painter.setPen(t.muted);
    painter.drawText(QRectF(box.left() + 22, y, name_width + 2, row), Qt::AlignVCenter, e.name);
    painter.setPen(t.text);
    painter.drawText(QRectF(box.left(), y, w - 8, row), Qt::AlignVCenter | Qt::AlignRight, e.value);
    y += row;
  }
}

// --- Title and legend ---

// Returns false if some entries did not fit even without names and were left out.
bool Chart::place_legend(std::vector<LegendEntry>& entries, int most, Names names, int& row) const {
  const QFontMetricsF metrics(small_font());
  double x = title_width() + 10;
  row = 0;
  const auto limit = [&] { return legend_limit(row); };
  for (LegendEntry& e : entries) {
    const bool filled = stack_.sample && e.color.isValid(), layer = filled && !options_.rows;
    if (layer) e.shown = false;
    const double mark = filled ? 13 : e.color.isValid() ? 16 : 0;
    const double value = layer ? 0 : metrics.horizontalAdvance(e.value);
    e.named = names == Names::where_they_fit || !e.color.isValid();
    double need = mark + (e.named ? metrics.horizontalAdvance(e.name) + (layer ? 0 : 5) : 0) + value;
    if (x + need > limit() && row + 1 < most) {
      ++row;
      x = 10;
    }
    if (x + need > limit() && !filled) {  // the name does not fit: mark and value only
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

// Buttons are in the first row.
double Chart::legend_limit(int row) const {
  return row == 0 ? header_end() - 6 : width() - 10.0;
}

void Chart::fold_legend(int all) {
  const auto text = [&] { return u"+%1"_s.arg(all - legend_entries()); };
  const QFontMetricsF metrics(small_font());
  folded_at_ = {};
  while (legend_entries() < all) {
    const QRectF last = legend_.empty() ? QRectF(title_width(), 4, 0, 18) : legend_.back().at;
    folded_at_ = QRectF(last.right() + 10, last.top(), metrics.horizontalAdvance(text()) + 2, 18);
    if (folded_at_.right() <= legend_limit(static_cast<int>(last.top()) / 18)) break;
    folded_at_ = {};
    if (legend_.empty()) break;
    legend_.pop_back();
  }
}

QStringList Chart::legend_texts() const {
  QStringList texts;
  for (const LegendEntry& e : legend()) texts << QString(e.name + u' ' + e.value);
  return texts;
}

QString Chart::folded_legend() const {
  return legend_texts().mid(legend_entries()).join(u'\n');
}

void Chart::lay_out_legend() {
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
  const int most = options_.rows ? 3 : !many || height() <= 170 ? 1 : very_many && height() > 190 ? 3 : 2;
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
  fold_legend(static_cast<int>(all.size()));
  // The number of rows only grows while the entries are the same; otherwise the chart would jump under a moving cursor.
  if (row + 1 > legend_rows_ || legend_rows_ > most) {
    legend_rows_ = row + 1;
    stale_ = true;
  }
}

double Chart::title_width() const {
  const QFont bold = demi_bold(small_font());
  double width = 10 + QFontMetricsF(bold).horizontalAdvance(options_.title);
  if (!options_.unit.isEmpty()) width += 5 + QFontMetricsF(small_font()).horizontalAdvance(options_.unit);
  return width;
}

void Chart::paint_header(QPainter& painter) const {
  const Theme& t = theme();
  const QFont bold = demi_bold(small_font());
  painter.setFont(bold);
  painter.setPen(t.text);
  painter.drawText(QPointF(10, 17), QFontMetricsF(bold).elidedText(options_.title, Qt::ElideRight, header_end() - 14));
  painter.setFont(small_font());
  const QFontMetricsF metrics(small_font());
  if (!caption_.isEmpty() && !is_table_shown()) {
    painter.setPen(notes_.empty() ? t.muted : t.bad);
    const double below = options_.rows && !levels_.empty() ? kCaption : 0;  // labels of levels, see area()
    const QRectF row(10, area().top() - kTickOverhang - kCaption - below - 1, width() - 20, kCaption);
    painter.drawText(row, Qt::AlignLeft | Qt::AlignVCenter, metrics.elidedText(caption_, Qt::ElideRight, row.width()));
  }
  painter.setPen(t.muted);
  const double left = title_width() - metrics.horizontalAdvance(options_.unit);
  painter.drawText(QPointF(left, 17), metrics.elidedText(options_.unit, Qt::ElideRight, header_end() - 6 - left));
  if (!folded_at_.isEmpty())
    painter.drawText(folded_at_, Qt::AlignVCenter, u"+%1"_s.arg(legend_names_.size() - legend_entries()));
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
