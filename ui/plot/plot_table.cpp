// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plot/plot_table.h"

#include <QClipboard>
#include <QGuiApplication>
#include <cmath>
#include <map>

#include "ui/plot/plot.h"
#include "ui/theme/text.h"

namespace mw::ui {

void PlotTableModel::load(const Plot& plot) {
  QStringList columns{plot.link().x_name()};
  std::map<double, std::vector<double>> rows;
  const Span x = plot.link().range();
  const auto add = [&](double at, size_t column, size_t of, double value) {
    if (rows.size() >= kMaxRows && !rows.contains(at)) return;
    auto& row = rows.try_emplace(at, of, std::nan("")).first->second;
    row[column] = value;
  };
  if (plot.stack().sample) {
    for (const auto& layer : plot.stack().layers) columns << layer.first;
    const Stack all = plot.stack().sample(x.low, x.high, static_cast<int>(kMaxRows / 2));
    for (size_t l = 0; l < all.values.size(); ++l)
      for (size_t i = 0; i < all.x.size(); ++i) add(all.x[i], l, all.values.size(), all.values[l][i]);
  } else {
    for (const PlotLine& line : plot.lines()) columns << line.name;
    for (size_t l = 0; l < plot.lines().size(); ++l) {
      const auto& raw = plot.lines()[l].raw;
      if (!raw) continue;
      const auto [begin, end] = raw->window(x.low, x.high);
      for (size_t i = begin; i < end; ++i) add((*raw)[i].x, l, plot.lines().size(), (*raw)[i].y);
    }
  }
  std::vector<std::vector<double>> flat;
  flat.reserve(rows.size());
  for (auto& [at, values] : rows) {
    flat.push_back({at});
    flat.back().insert(flat.back().end(), values.begin(), values.end());
  }
  // During a run rows are only appended, without a reset, so that the scroll position stays.
  const bool grows = columns == columns_ && flat.size() >= rows_.size() &&
                     (rows_.empty() || flat[rows_.size() - 1][0] == rows_.back()[0]) &&
                     (rows_.empty() || flat[0][0] == rows_[0][0]);
  names_.clear();
  if (!plot.link().stops().empty())
    for (const auto& row : flat) {
      const bool measured = !plot.stack().sample || plot.stack().origin_at(row[0]) == Origin::measured;
      names_.push_back(measured ? plot.link().x_text(row[0]) : tr("%1 (predicted)").arg(plot.link().x_text(row[0])));
    }
  x_ = plot.link().x_quantity();
  y_ = plot.options().quantity;
  if (!grows) {
    beginResetModel();
    columns_ = columns;
    rows_ = std::move(flat);
    endResetModel();
    return;
  }
  const auto before = static_cast<int>(rows_.size()), now = static_cast<int>(flat.size());
  if (now > before) beginInsertRows({}, before, now - 1);
  rows_ = std::move(flat);
  if (now > before) endInsertRows();
  if (before > 0) emit dataChanged(index(before - 1, 0), index(before - 1, columnCount() - 1));
}

int PlotTableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int PlotTableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(columns_.size());
}

QVariant PlotTableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const double v = rows_[static_cast<size_t>(index.row())][static_cast<size_t>(index.column())];
  if (role == Qt::DisplayRole && index.column() == 0 && !names_.empty())
    return names_[static_cast<size_t>(index.row())];
  if (role == Qt::DisplayRole) return std::isnan(v) ? QString() : value_text(v, index.column() == 0 ? x_ : y_);
  if (role == Qt::TextAlignmentRole) return static_cast<int>(Qt::AlignRight | Qt::AlignVCenter);
  return {};
}

QVariant PlotTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole || section >= columns_.size()) return {};
  return columns_[section];
}

QString PlotTableModel::csv() const {
  QString out;
  for (qsizetype c = 0; c < columns_.size(); ++c) out += (c ? u","_s : QString()) + csv_cell(columns_[c]);
  out += u"\r\n"_s;
  for (size_t r = 0; r < rows_.size(); ++r) {
    const auto& row = rows_[r];
    if (!names_.empty()) out += csv_cell(names_[r]);
    for (size_t c = names_.empty() ? 0 : 1; c < row.size(); ++c)
      out += (c ? u","_s : QString()) + (std::isnan(row[c]) ? QString() : QString::number(row[c], 'g', 17));
    out += u"\r\n"_s;
  }
  return out;
}

void copy_csv(const Plot& plot) {
  PlotTableModel model(nullptr);
  model.load(plot);
  QGuiApplication::clipboard()->setText(model.csv());
}

}  // namespace mw::ui
