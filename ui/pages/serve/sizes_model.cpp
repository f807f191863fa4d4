// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/sizes_model.h"

#include <QFont>

#include "ui/run_views/run_lines.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

using serve::SizePoint;
using SizeColumn = TableColumn<SizePoint>;
using Value = std::function<std::optional<double>(const SizePoint&)>;

// A number with its unit; empty if the point has none.
SizeColumn quantity_column(const QString& title, const QString& tooltip, Quantity quantity, Value value) {
  return {.title = title,
          .unit = quantity == Quantity::bytes     ? u"bytes"_s
                  : quantity == Quantity::seconds ? u"seconds"_s
                                                  : QString(),
          .tooltip = tooltip,
          .alignment = Qt::AlignRight,
          .text =
              [value, quantity](const SizePoint& p) {
                const auto v = value(p);
                return !v ? QString() : quantity == Quantity::plain ? qs(count_text(*v)) : value_text(*v, quantity);
              },
          .sort_key =
              [value](const SizePoint& p) {
                const auto v = value(p);
                return v ? QVariant(*v) : QVariant();
              }};
}

using MeasuredValue = double (*)(const SizePoint::Measured&);
Value measured(MeasuredValue value) {
  return [value](const SizePoint& p) { return p.measured ? std::optional(value(*p.measured)) : std::nullopt; };
}
Value measured_rollout(double SizePoint::Measured::*member) {
  return [member](const SizePoint& p) {
    const bool has = p.measured && p.workload == serve::Workload::rollout;
    return has ? std::optional((*p.measured).*member) : std::nullopt;
  };
}

SizeColumn category_column(MemoryCategory category) {
  const QString name = category_text(category);
  return quantity_column(
      name.startsWith(u"kv "_s) ? QString(u"KV"_s + name.mid(2)) : QString(name.left(1).toUpper() + name.mid(1)),
      QObject::tr("Memory of %1 at the peak of the total; italic: predicted").arg(name), Quantity::bytes,
      [category](const SizePoint& p) {
        return static_cast<double>((p.measured ? p.measured->memory : p.predicted)[category].value);
      });
}

std::vector<SizeColumn> size_columns() {
  using Measured = SizePoint::Measured;
  std::vector<SizeColumn> columns{
      {.title = QObject::tr("Workload"),
       .text = [](const SizePoint& p) { return workload_text(p.workload); },
       .sort_key = [](const SizePoint& p) { return qs(to_string(p.workload)); }},
      quantity_column(QObject::tr("Batch"), QObject::tr("Rows in the batch"), Quantity::count,
                      [](const SizePoint& p) { return p.batch; }),
      quantity_column(QObject::tr("Time"), QObject::tr("Measured time of the whole batch"), Quantity::seconds,
                      measured([](const Measured& m) { return m.seconds; })),
      quantity_column(QObject::tr("Time/token"),
                      QObject::tr("Time per generated token of a rollout or per scored token of a forward pass"),
                      Quantity::seconds, measured([](const Measured& m) { return m.seconds_per_token(); })),
      quantity_column(QObject::tr("Tokens/s"), QObject::tr("Tokens per second of all rows"), Quantity::plain,
                      measured([](const Measured& m) { return m.tokens_per_second(); })),
      quantity_column(QObject::tr("Peak"), QObject::tr("Measured peak memory"), Quantity::bytes,
                      measured([](const Measured& m) { return static_cast<double>(m.memory.total().value); })),
      quantity_column(QObject::tr("Predicted peak"), QObject::tr("Peak memory predicted before the measurement"),
                      Quantity::bytes,
                      [](const SizePoint& p) { return static_cast<double>(p.predicted.total().value); }),
      {.title = QObject::tr("Result"),
       .tooltip = QObject::tr("Whether the point was measured, or why not"),
       .text =
           [](const SizePoint& p) {
             return p.measured ? QObject::tr("measured, median of %1").arg(p.measured->repeats) : refusal_text(p);
           }},
      quantity_column(QObject::tr("Prefill"), QObject::tr("Time of a rollout until every row has its first token"),
                      Quantity::seconds, measured_rollout(&Measured::prefill_seconds)),
      quantity_column(QObject::tr("Step"), QObject::tr("Time of a rollout for one more token of every row"),
                      Quantity::seconds, measured_rollout(&Measured::step_seconds))};
  for (const MemoryCategory category : all_values<MemoryCategory>()) columns.push_back(category_column(category));
  return columns;
}

}  // namespace

SizesModel::SizesModel()
    : TableModel(size_columns(), [this](const SizePoint& p, int column, int role) -> QVariant {
        const bool estimate = column == predicted || (column >= categories && !p.measured);
        if (role == Qt::ForegroundRole && column == result && !p.measured) return theme().bad;
        if (!estimate) return {};
        if (role == Qt::ForegroundRole) return theme().muted;
        if (role == Qt::ToolTipRole) return QString(text(p, column) + u", "_s + tr("predicted"));
        if (role != Qt::FontRole) return {};
        QFont font;
        font.setItalic(true);
        return font;
      }) {}

void SizesModel::show(SizeViewPtr view) {
  std::vector<SizePoint> now;
  if (view)
    for (const auto& line : view->lines) now.insert(now.end(), line.points.begin(), line.points.end());
  view_ = std::move(view);
  set_rows(std::move(now),
           [](const SizePoint& a, const SizePoint& b) { return a.workload == b.workload && a.batch == b.batch; });
}

bool SizesModel::is_column_used(int column) const {
  return column < categories ||
         (view_ && view_->category_most.bytes[static_cast<size_t>(column - categories)].value > 0);
}

}  // namespace mw::ui
