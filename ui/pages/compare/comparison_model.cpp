// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/comparison_model.h"

#include <QFont>
#include <QFontMetrics>
#include <QGuiApplication>
#include <algorithm>

#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

// Too few requests are reported as text above the table and in the tooltip; colours are for errors.
bool is_mark(const std::string& mark) {
  for (const std::string kind : {"impossible", "suspicious"})
    if (mark.starts_with(kind) || mark.find("; " + kind) != std::string::npos) return true;
  return false;
}

}  // namespace

QString delta_text(double delta) {
  if (!std::isfinite(delta)) return {};
  if (std::abs(delta) < 0.0005) return delta == 0 ? u"="_s : u"\u2248"_s;
  const QString glyph = delta < 0 ? u"\u25BC "_s : u"\u25B2 "_s;
  if (delta >= 2) return glyph + QString::number(delta + 1, 'f', delta >= 9 ? 0 : 1) + u" x"_s;
  const double percent = std::abs(delta) * 100;
  return glyph + QString::number(percent, 'f', percent < 9.95 ? 1 : 0) + u" %"_s;
}

double slo_of_key(const options::Slo& slo, std::string_view key) {
  const auto about = [&](std::string_view name) { return key.find(name) != std::string_view::npos; };
  return about("ttft") ? slo.ttft_ms : about("tpot") ? slo.tpot_ms : about("e2el") ? slo.e2e_ms : 0;
}

ComparisonModel::ComparisonModel()
    : TableModel({},
                 [this](const compare::ComparisonRow& row, int column, int role) { return cell(row, column, role); }) {}

void ComparisonModel::refill() {
  Columns columns;
  if (comparison_)
    columns.push_back({.title = tr("Property"), .text = [](const compare::ComparisonRow& r) {
                         return r.unit.empty() ? qs(r.label) : tr("%1, %2").arg(qs(r.label), qs(r.unit));
                       }});
  for (size_t c = 0; comparison_ && c < comparison_->names.size(); ++c) {
    const QString name = qs(comparison_->names[c]);
    columns.push_back({.title = name,
                       .tooltip = c == 0 ? tr("%1: the baseline for the changes of the others").arg(name) : name,
                       .text = [this, c](const compare::ComparisonRow& r) { return value_text(r, c); }});
  }
  std::vector<compare::ComparisonRow> rows;
  if (comparison_) {
    const auto& all = comparison_->rows;
    const auto compares = [](const auto& r) {
      return r.kind != compare::ComparisonRow::Kind::result || r.recorded() > 1;
    };
    // Runs without a common result keep what each of them has.
    const bool common = std::any_of(all.begin(), all.end(), [&](const auto& r) {
      return r.kind == compare::ComparisonRow::Kind::result && compares(r);
    });
    for (const auto& r : all)
      if (r.recorded() > 0 && (shown_ == RowsShown::all || !common || compares(r))) rows.push_back(r);
  }
  set_table(std::move(columns), std::move(rows));
}

void ComparisonModel::show(Ptr comparison) {
  comparison_ = std::move(comparison);
  refill();
}

void ComparisonModel::set_shown(RowsShown shown) {
  shown_ = shown;
  refill();
}

// A header with a style sheet cuts long titles instead of eliding them.
QVariant ComparisonModel::headerData(int section, Qt::Orientation orientation, int role) const {
  QVariant whole = TableModel::headerData(section, orientation, role);
  if (role != Qt::DisplayRole || section == 0 || title_width_ == 0) return whole;
  return QFontMetrics(QGuiApplication::font()).elidedText(whole.toString(), Qt::ElideMiddle, title_width_);
}

void ComparisonModel::set_slo(const options::Slo& slo) {
  slo_ = slo;
  announce_all();
}

void ComparisonModel::set_emphasis(int column) {
  if (column == emphasis_) return;
  emphasis_ = column;
  announce_all();
}

bool ComparisonModel::over_slo(const compare::ComparisonRow& row, size_t column) const {
  const double limit = row.kind == compare::ComparisonRow::Kind::result ? slo_of_key(slo_, row.key) : 0;
  return limit > 0 && column < row.values.size() && row.values[column] && *row.values[column] > limit;
}

int ComparisonModel::marked_cells() const {
  int marked = 0;
  for (const auto& row : rows_)
    for (const auto& mark : row.marks) marked += is_mark(mark);
  return marked;
}

QString ComparisonModel::value_text(const compare::ComparisonRow& row, size_t column) const {
  QString text = column < row.texts.size() ? qs(row.texts[column]) : QString();
  if (text.isEmpty()) return u"\u2013"_s;
  if (column > 0 && column < row.deltas.size() && row.deltas[column])
    text += u"   "_s + delta_text(*row.deltas[column]);
  if (const std::string share = compare::share_text(row.effects, column); !share.empty()) text += u"   "_s + qs(share);
  if (over_slo(row, column)) text = tr("%1  > SLO").arg(text);
  return text;
}

QString ComparisonModel::tooltip(const compare::ComparisonRow& row, size_t column) const {
  QStringList lines{
      u"<b>%1</b>, %2"_s.arg(qs(row.label).toHtmlEscaped(), qs(comparison_->names[column]).toHtmlEscaped())};
  lines << value_text(row, column).toHtmlEscaped() + u' ' + qs(row.unit).toHtmlEscaped();
  if (const std::string effects = effects_text(*comparison_, row.effects); !effects.empty())
    lines << tr("<b>Effect:</b> %1").arg(qs(effects).toHtmlEscaped());
  if (over_slo(row, column)) lines << tr("above the SLO of %1 ms").arg(slo_of_key(slo_, row.key));
  if (column < row.marks.size() && !row.marks[column].empty())
    lines << tr("<b>Audit:</b> %1").arg(qs(row.marks[column]).toHtmlEscaped().replace(u'\n', u"<br>"_s));
  return lines.join(u"<br>"_s);
}

QVariant ComparisonModel::cell(const compare::ComparisonRow& r, int table_column, int role) const {
  const bool setting = r.kind == compare::ComparisonRow::Kind::setting;
  if (table_column == 0) {
    if (role == Qt::ToolTipRole) return qs(r.key);
    return role == Qt::ForegroundRole ? QVariant(setting ? theme().muted : theme().text) : QVariant();
  }
  const auto column = static_cast<size_t>(table_column - 1);
  const bool marked = column < r.marks.size() && is_mark(r.marks[column]);
  const bool impossible = marked && r.marks[column].starts_with("impossible");
  switch (role) {
    case Qt::ToolTipRole:
      return tooltip(r, column);
    case Qt::TextAlignmentRole:
      return static_cast<int>((setting ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    case Qt::BackgroundRole:
      if (marked) return mix(theme().panel, impossible ? theme().bad : theme().warn, 0.30);
      if (emphasis_ == static_cast<int>(column)) return mix(theme().panel, theme().series(emphasis_), 0.16);
      return {};
    case Qt::ForegroundRole: {
      if (over_slo(r, column)) return theme().bad;
      if (marked || column == 0 || column >= r.deltas.size() || !r.deltas[column]) return {};
      const double delta = *r.deltas[column];
      if (r.better == compare::ComparisonRow::Better::neither || std::abs(delta) < 0.0005) return {};
      return (delta < 0) == (r.better == compare::ComparisonRow::Better::lower) ? theme().good : theme().warn;
    }
    case Qt::FontRole:
      if (marked) {
        QFont bold;
        bold.setWeight(QFont::DemiBold);
        return bold;
      }
      return {};
    case marked_role:
      return marked;
    case impossible_role:
      return impossible;
    case over_slo_role:
      return over_slo(r, column);
  }
  return {};
}

}  // namespace mw::ui
