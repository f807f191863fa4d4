// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/calibration_models.h"

#include <algorithm>
#include <cmath>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {

void CalibrationModel::show(CalibratedPtr calibrated) {
  beginResetModel();
  calibrated_ = std::move(calibrated);
  endResetModel();
}

QVariant CalibrationModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  switch (role) {
    case Qt::DisplayRole:
      return text(index.row(), index.column());
    case Qt::ToolTipRole:
      return help(index.row());
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignVCenter | (number(index.column()) ? Qt::AlignRight : Qt::AlignLeft));
    case Qt::ForegroundRole:
      return color(index.row(), index.column());
    default:
      return {};
  }
}

QVariant CalibrationModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return QVariant(Qt::AlignVCenter | (number(section) ? Qt::AlignRight : Qt::AlignLeft));
  return role == Qt::DisplayRole ? QVariant(title(section)) : QVariant();
}

int CalibrationRowsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !proposal() ? 0 : static_cast<int>(proposal()->rows.size());
}

int CalibrationRowsModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

QString CalibrationRowsModel::title(int column) const {
  const QString names[] = {tr("Row"),         tr("Chip"),     tr("Stack"),  tr("Use"),       tr("Measured"),
                           tr("Now"),         tr("Held Out"), tr("Fitted"), tr("Error Now"), tr("Error Held Out"),
                           tr("Error Fitted")};
  return names[column];
}

QString CalibrationRowsModel::text(int at, int column) const {
  const plan::ProposedRow& r = proposal()->rows[static_cast<size_t>(at)];
  const plan::Measurement& m = r.measured;
  const auto value = [](double v) { return qs(number_text(v, 3)); };
  switch (column) {
    case row:
      return qs(m.id);
    case chip:
      return qs(m.request.target.chip.id);
    case stack:
      return qs(model::to_string(m.request.stack));
    case use:
      return r.used() ? tr("fitted") : tr("held out");
    case measured:
      return value(m.value) + u" "_s + qs(m.unit);
    case now:
      return value(r.now.predicted);
    case held_out:
      return r.held_out ? value(r.held_out->predicted) : QString();
    case fitted:
      return value(r.fitted.predicted);
    case error_now:
      return qs(planning::error_text(r.now.error));
    case error_held_out:
      return r.held_out ? qs(planning::error_text(r.held_out->error)) : QString();
    case error_fitted:
      return qs(planning::error_text(r.fitted.error));
  }
  return {};
}

QString CalibrationRowsModel::help(int at) const {
  const plan::ProposedRow& r = proposal()->rows[static_cast<size_t>(at)];
  QStringList parts{tr("measured; from %1").arg(qs(r.measured.source))};
  if (r.held_out)
    parts << (r.others > 0 ? tr("held out: predicted by %n other row(s) of this chip and stack", nullptr, r.others)
                           : tr("held out: no other row of this chip and stack; other chips or the defaults say it"));
  else
    parts << tr("only predicted, never fitted to");
  for (const std::string& text : r.measured.assumed) parts << tr("assumed: %1").arg(qs(text));
  return parts.join(u'\n');
}

QVariant CalibrationRowsModel::color(int at, int column) const {
  const plan::ProposedRow& r = proposal()->rows[static_cast<size_t>(at)];
  const Theme& t = theme();
  if (column == chip || column == stack || column == use || column == now) return t.muted;
  if (column != error_held_out || !r.held_out) return {};
  const double before = std::abs(r.now.error), after = std::abs(r.held_out->error);
  if (after > before + 0.005) return t.warn;
  return after < before - 0.005 ? QVariant(t.good) : QVariant();
}

int EfficienciesModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !proposal() ? 0 : static_cast<int>(proposal()->efficiencies.size());
}

int EfficienciesModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

QString EfficienciesModel::title(int column) const {
  const QString names[] = {tr("Efficiency"), tr("Chip"),     tr("Stack"), tr("Now"),
                           tr("Proposed"),   tr("Interval"), tr("Rows")};
  return names[column];
}

QString EfficienciesModel::text(int at, int column) const {
  const plan::ProposedEfficiency& e = proposal()->efficiencies[static_cast<size_t>(at)];
  const auto value = [](double v) { return qs(number_text(v, 3)); };
  switch (column) {
    case name:
      return qs(e.factor.name);
    case chip:
      return qs(e.factor.chip);
    case stack:
      return qs(model::to_string(e.factor.stack));
    case before:
      return value(e.before);
    case after:
      return value(e.after) + (e.at_limit ? tr(" (limit)") : QString());
    case interval:
      return tr("%1 to %2").arg(value(e.low), value(e.high));
    case rows:
      return QString::number(e.factor.rows.size());
  }
  return {};
}

QString EfficienciesModel::help(int at) const {
  const plan::ProposedEfficiency& e = proposal()->efficiencies[static_cast<size_t>(at)];
  QStringList parts;
  for (const auto& n : plan::Efficiencies::names())
    if (n.name == e.factor.name) parts << qs(n.help);
  parts << tr("default %1: %2").arg(qs(number_text(e.original.value, 3)), qs(e.original.source));
  QStringList ids;
  for (const std::string& id : e.factor.rows) ids << qs(id);
  parts << tr("fitted to: %1").arg(ids.join(u", "_s));
  if (e.at_limit) parts << tr("the rows ask for a value beyond its limit");
  return parts.join(u'\n');
}

QVariant EfficienciesModel::color(int at, int column) const {
  const plan::ProposedEfficiency& e = proposal()->efficiencies[static_cast<size_t>(at)];
  if (column == after && e.at_limit) return theme().warn;
  return column == after || column == name ? QVariant() : QVariant(theme().muted);
}

}  // namespace mw::ui
