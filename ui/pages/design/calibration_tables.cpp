// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/calibration_tables.h"

#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

using plan::ProposedEfficiency;
using plan::ProposedRow;

QString value_text(double value) {
  return qs(number_text(value, 3));
}

QString row_tooltip(const ProposedRow& r) {
  const auto tr = [](const char* text, int n = -1) { return CalibrationRowsModel::tr(text, nullptr, n); };
  QStringList parts{tr("measured; from %1").arg(qs(r.measured.source))};
  if (r.held_out)
    parts << (r.others > 0
                  ? tr("held out: predicted by %n other row(s) of this chip and stack", r.others)
                  : tr("held out: no other row of this chip and stack; predicted from other chips or the defaults"));
  else
    parts << tr("predicted only, never used for fitting");
  for (const std::string& text : r.measured.assumed) parts << tr("assumed: %1").arg(qs(text));
  return parts.join(u'\n');
}

QVariant row_color(const ProposedRow& r, int column) {
  using Model = CalibrationRowsModel;
  const Theme& t = theme();
  if (column == Model::chip || column == Model::stack || column == Model::use || column == Model::now) return t.muted;
  if (column != Model::error_held_out || !r.held_out) return {};
  const double before = std::abs(r.now.error), after = std::abs(r.held_out->error);
  if (after > before + 0.005) return t.warn;
  return after < before - 0.005 ? QVariant(t.good) : QVariant();
}

QString efficiency_tooltip(const ProposedEfficiency& e) {
  const auto tr = [](const char* text) { return EfficienciesModel::tr(text); };
  QStringList parts;
  for (const auto& n : plan::Efficiencies::names())
    if (n.name == e.factor.name) parts << qs(n.help);
  parts << tr("default %1: %2").arg(value_text(e.original.value), qs(e.original.source));
  QStringList ids;
  for (const std::string& id : e.factor.rows) ids << qs(id);
  parts << tr("fitted to: %1").arg(ids.join(u", "_s));
  if (e.at_limit) parts << tr("the rows require a value beyond the limit");
  return parts.join(u'\n');
}

}  // namespace

CalibrationRowsModel::CalibrationRowsModel()
    : TableModel(
          {{.title = tr("Row"), .text = [](const ProposedRow& r) { return qs(r.measured.id); }},
           {.title = tr("Chip"), .text = [](const ProposedRow& r) { return qs(r.measured.request.target.chip.id); }},
           {.title = tr("Stack"),
            .text = [](const ProposedRow& r) { return qs(model::to_string(r.measured.request.stack)); }},
           {.title = tr("Use"), .text = [](const ProposedRow& r) { return r.used() ? tr("fitted") : tr("held out"); }},
           {.title = tr("Measured"),
            .alignment = Qt::AlignRight,
            .text = [](const ProposedRow& r) -> QString {
              return value_text(r.measured.value) + u" "_s + qs(r.measured.unit);
            }},
           {.title = tr("Now"),
            .alignment = Qt::AlignRight,
            .text = [](const ProposedRow& r) { return value_text(r.now.predicted); }},
           {.title = tr("Held out"),
            .alignment = Qt::AlignRight,
            .text = [](const ProposedRow& r) { return r.held_out ? value_text(r.held_out->predicted) : QString(); }},
           {.title = tr("Fitted"),
            .alignment = Qt::AlignRight,
            .text = [](const ProposedRow& r) { return value_text(r.fitted.predicted); }},
           {.title = tr("Current error"),
            .alignment = Qt::AlignRight,
            .text = [](const ProposedRow& r) { return qs(planning::error_text(r.now.error)); }},
           {.title = tr("Held-out error"),
            .alignment = Qt::AlignRight,
            .text =
                [](const ProposedRow& r) {
                  return r.held_out ? qs(planning::error_text(r.held_out->error)) : QString();
                }},
           {.title = tr("Fitted error"),
            .alignment = Qt::AlignRight,
            .text = [](const ProposedRow& r) { return qs(planning::error_text(r.fitted.error)); }}},
          [](const ProposedRow& r, int column, int role) -> QVariant {
            if (role == Qt::ToolTipRole) return row_tooltip(r);
            return role == Qt::ForegroundRole ? row_color(r, column) : QVariant();
          }) {}

EfficienciesModel::EfficienciesModel()
    : TableModel(
          {{.title = tr("Efficiency"), .text = [](const ProposedEfficiency& e) { return qs(e.factor.name); }},
           {.title = tr("Chip"), .text = [](const ProposedEfficiency& e) { return qs(e.factor.chip); }},
           {.title = tr("Stack"),
            .text = [](const ProposedEfficiency& e) { return qs(model::to_string(e.factor.stack)); }},
           {.title = tr("Now"),
            .alignment = Qt::AlignRight,
            .text = [](const ProposedEfficiency& e) { return value_text(e.before); }},
           {.title = tr("Proposed"),
            .alignment = Qt::AlignRight,
            .text = [](const ProposedEfficiency& e) -> QString {
              return value_text(e.after) + (e.at_limit ? tr(" (limit)") : QString());
            }},
           {.title = tr("Interval"),
            .alignment = Qt::AlignRight,
            .text =
                [](const ProposedEfficiency& e) { return tr("%1 to %2").arg(value_text(e.low), value_text(e.high)); }},
           {.title = tr("Rows"),
            .alignment = Qt::AlignRight,
            .text = [](const ProposedEfficiency& e) { return QString::number(e.factor.rows.size()); }}},
          [](const ProposedEfficiency& e, int column, int role) -> QVariant {
            if (role == Qt::ToolTipRole) return efficiency_tooltip(e);
            if (role != Qt::ForegroundRole) return {};
            if (column == after && e.at_limit) return theme().warn;
            return column == after || column == name ? QVariant() : QVariant(theme().muted);
          }) {}

}  // namespace mw::ui
