// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plot/plot_table.h"

#include <QClipboard>
#include <QGuiApplication>
#include <cmath>
#include <map>

#include "ui/plot/plot.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

constexpr size_t kMaxRows = 100000;

// Values by x, one per layer or line.
std::map<double, std::vector<double>> visible_values(const Plot& plot) {
  std::map<double, std::vector<double>> rows;
  const Span x = plot.link().range();
  const auto add = [&](double at, size_t column, size_t columns, double value) {
    if (rows.size() >= kMaxRows && !rows.contains(at)) return;
    rows.try_emplace(at, columns, std::nan("")).first->second[column] = value;
  };
  if (plot.stack().sample) {
    const Stack all = plot.stack().sample(x.low, x.high, static_cast<int>(kMaxRows / 2));
    for (size_t l = 0; l < all.values.size(); ++l)
      for (size_t i = 0; i < all.x.size(); ++i) add(all.x[i], l, all.values.size(), all.values[l][i]);
    return rows;
  }
  for (size_t l = 0; l < plot.lines().size(); ++l) {
    const auto& raw = plot.lines()[l].raw;
    if (!raw) continue;
    const auto [begin, end] = raw->window(x.low, x.high);
    for (size_t i = begin; i < end; ++i) add((*raw)[i].x, l, plot.lines().size(), (*raw)[i].y);
  }
  return rows;
}

TableColumn<PlotRow> plot_column(const QString& title, size_t column, Quantity quantity) {
  return {.title = title, .alignment = Qt::AlignRight, .text = [column, quantity](const PlotRow& row) {
            if (column == 0 && !row.name.isEmpty()) return row.name;
            const double value = row.values[column];
            return std::isnan(value) ? QString() : value_text(value, quantity);
          }};
}

}  // namespace

void PlotTableModel::load(const Plot& plot) {
  const PlotLink& link = plot.link();
  QStringList titles{link.x_name()};
  if (plot.stack().sample)
    for (const auto& layer : plot.stack().layers) titles << layer.first;
  else
    for (const PlotLine& line : plot.lines()) titles << line.name;
  std::vector<PlotRow> rows;
  for (const auto& [x, values] : visible_values(plot)) {
    PlotRow& row = rows.emplace_back(PlotRow{.values = {x}});
    row.values.insert(row.values.end(), values.begin(), values.end());
    if (link.stops().empty()) continue;
    const bool measured = !plot.stack().sample || plot.stack().origin_at(x) == Origin::measured;
    row.name = measured ? link.x_text(x) : tr("%1 (predicted)").arg(link.x_text(x));
  }
  // During a run rows are only appended, without a reset, so that the scroll position stays.
  if (titles == titles_)
    return set_rows(std::move(rows), [](const PlotRow& a, const PlotRow& b) { return a.values[0] == b.values[0]; });
  titles_ = titles;
  Columns columns;
  for (const QString& title : titles)
    columns.push_back(
        plot_column(title, columns.size(), columns.empty() ? link.x_quantity() : plot.options().quantity));
  set_table(std::move(columns), std::move(rows));
}

QString PlotTableModel::csv() const {
  const auto line = [](const QStringList& cells) -> QString { return cells.join(u',') + u"\r\n"_s; };
  QStringList header;
  for (const QString& title : titles_) header << csv_cell(title);
  QString out = line(header);
  for (const PlotRow& row : rows_) {
    QStringList cells;
    for (const double value : row.values) cells << (std::isnan(value) ? QString() : QString::number(value, 'g', 17));
    if (!row.name.isEmpty()) cells[0] = csv_cell(row.name);
    out += line(cells);
  }
  return out;
}

void copy_csv(const Plot& plot) {
  PlotTableModel model(nullptr);
  model.load(plot);
  QGuiApplication::clipboard()->setText(model.csv());
}

}  // namespace mw::ui
