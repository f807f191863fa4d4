// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/heat_table.h"

#include "ui/charts/ticks.h"
#include "ui/pages/compare/comparison_model.h"
#include "ui/theme/icons.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

QString metric_text(double value, views::SweepMetric metric) {
  if (!std::isfinite(value)) return {};
  if (metric == views::SweepMetric::cost) return u"$"_s + QString::number(value, 'f', 2);
  return value_text(value, views::is_latency(metric) ? AxisQuantity::seconds : AxisQuantity::plain);
}

}  // namespace

HeatTable::HeatTable()
    : TableModel({}, [this](const HeatRow& row, int column, int role) { return cell(row, column, role); }) {}

void HeatTable::show(const std::vector<compare::ComparedRun>& runs, const QStringList& names,
                     views::SweepMetric metric) {
  metric_ = metric;
  loads_.clear();
  least_ = INFINITY, most_ = 0;
  std::vector<HeatRow> rows;
  for (size_t c = 0; c < runs.size(); ++c) {
    if (!runs[c].sweep) continue;
    const compare::HeatMap map = compare::heat_map(runs, c, metric);
    if (loads_.isEmpty())
      for (const std::string& load : map.loads) loads_ << qs(load);
    for (size_t r = 0; r < map.lens.size(); ++r) {
      rows.push_back({c, names[static_cast<qsizetype>(c)], map.lens[r], {}});
      for (size_t l = 0; l < map.loads.size(); ++l) rows.back().cells.push_back(map.at(r, l));
      for (const auto& cell : rows.back().cells)
        if (cell.value > 0) least_ = std::min(least_, cell.value), most_ = std::max(most_, cell.value);
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.input_len < b.input_len; });
  Columns columns{number(tr("Prompt (tokens)"), [](const auto& r) { return grouped(r.input_len); }),
                  {.title = tr("Run"), .text = [](const HeatRow& r) { return r.run; }}};
  for (qsizetype l = 0; l < loads_.size(); ++l) {
    QString title = loads_[l];  // narrow: all loads share the width
    title.replace(u" requests/s"_s, u"/s"_s).replace(u"rate not recorded"_s, u"rate not\nrecorded"_s);
    columns.push_back(number(title, [this, l](const auto& r) { return cell_text(r.cells[static_cast<size_t>(l)]); }));
  }
  set_table(std::move(columns), std::move(rows));
}

double HeatTable::share(double value) const {
  if (!(value > 0) || !(most_ > least_)) return 0.5;
  return std::log(value / least_) / std::log(most_ / least_);
}

QString HeatTable::cell_text(const compare::HeatMap::Cell& cell) const {
  QString text = metric_text(cell.value, metric_);
  if (std::isfinite(cell.change)) text += u"\n"_s + delta_text(cell.change);
  return text;
}

QVariant HeatTable::cell(const HeatRow& row, int column, int role) const {
  const Theme& t = theme();
  if (column == 1 && role == Qt::DecorationRole) return t.series(static_cast<int>(row.column));
  if (column < kNames) return {};
  const auto& cell = row.cells[static_cast<size_t>(column - kNames)];
  const bool known = std::isfinite(cell.value), marked = known && !cell.mark.empty();
  if (role == Qt::BackgroundRole)
    return known ? mix(t.panel, t.accent, 0.06 + 0.46 * share(cell.value)) : mix(t.panel, t.line, 0.25);
  if (role == Qt::ForegroundRole) return t.text;
  if (role == Qt::FontRole && marked) {
    QFont bold;
    bold.setWeight(QFont::DemiBold);
    return bold;
  }
  if (role == Qt::DecorationRole && marked)
    return icon(cell.verdict == audit::Verdict::impossible ? Glyph::error : Glyph::warning,
                cell.verdict == audit::Verdict::impossible ? IconColor::bad : IconColor::warn);
  if (role != Qt::ToolTipRole) return {};
  QString text = tr("<b>%1</b>, %n token(s), %2<br>%3: %4", nullptr, row.input_len)
                     .arg(row.run.toHtmlEscaped(), load_at(column), qs(views::label_of(metric_)),
                          known ? cell_text(cell) : tr("not recorded"));
  if (marked) text += u"<br>"_s + qs(cell.mark).toHtmlEscaped();
  return text;
}

}  // namespace mw::ui
