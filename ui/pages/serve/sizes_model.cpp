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

// Of a measured or a predicted time.
template <class Function>
Value time_value(Function value) {
  return [value](const SizePoint& p) -> std::optional<double> {
    if (p.measured) return value(*p.measured);
    return p.predicted_time ? std::optional(value(*p.predicted_time)) : std::nullopt;
  };
}

QString result_text(const SizePoint& p) {
  if (p.measured) return QObject::tr("measured, median of %1").arg(p.measured->repeats);
  if (!p.predicted_time) return refusal_text(p);
  const auto& time = *p.predicted_time;
  return QObject::tr("predicted, %1 to %2 (%3)")
      .arg(value_text(time.low, Quantity::seconds), value_text(time.high, Quantity::seconds),
           qs(to_string(time.origin)));
}

Value measured_rollout(double SizePoint::Measured::*member) {
  return [member](const SizePoint& p) {
    const bool has = p.measured && p.workload == options::Workload::rollout;
    return has ? std::optional((*p.measured).*member) : std::nullopt;
  };
}

SizeColumn category_column(MemoryCategory category) {
  const QString name = category_text(category);
  return quantity_column(name.startsWith(u"kv "_s) ? QString(u"KV"_s + name.mid(2)) : capitalized(name),
                         QObject::tr("Memory of %1 at the peak of the total; italic: predicted").arg(name),
                         Quantity::bytes, [category](const SizePoint& p) {
                           return static_cast<double>((p.measured ? p.measured->memory : p.predicted)[category].value);
                         });
}

std::vector<SizeColumn> size_columns() {
  std::vector<SizeColumn> columns{
      {.title = QObject::tr("Workload"),
       .text =
           [](const SizePoint& p) {
             return p.adapters ? QObject::tr("%1, LoRA").arg(workload_text(p.workload)) : workload_text(p.workload);
           },
       .sort_key =
           [](const SizePoint& p) {
             return p.adapters ? QString(qs(to_string(p.workload)) + u"+lora"_s) : qs(to_string(p.workload));
           }},
      quantity_column(QObject::tr("Batch"), QObject::tr("Rows in the batch"), Quantity::count,
                      [](const SizePoint& p) { return p.batch; }),
      quantity_column(QObject::tr("Time"), QObject::tr("Time of the whole batch; italic: predicted"), Quantity::seconds,
                      time_value([](const auto& t) { return t.seconds; })),
      quantity_column(QObject::tr("Time/token"),
                      QObject::tr("Time per generated token of a rollout or per scored token of a forward pass"),
                      Quantity::seconds, time_value([](const auto& t) { return t.seconds_per_token(); })),
      quantity_column(QObject::tr("Tokens/s"), QObject::tr("Tokens per second of all rows"), Quantity::plain,
                      time_value([](const auto& t) { return t.tokens_per_second(); })),
      quantity_column(QObject::tr("Peak"), QObject::tr("Measured peak memory"), Quantity::bytes,
                      [](const SizePoint& p) {
                        return p.measured ? std::optional(static_cast<double>(p.measured->memory.total().value))
                                          : std::nullopt;
                      }),
      quantity_column(QObject::tr("Predicted peak"), QObject::tr("Peak memory predicted before the measurement"),
                      Quantity::bytes,
                      [](const SizePoint& p) { return static_cast<double>(p.predicted.total().value); }),
      {.title = QObject::tr("Result"),
       .tooltip = QObject::tr("Whether the point was measured or predicted, or why it has no time"),
       .text = result_text},
      quantity_column(QObject::tr("Prefill"), QObject::tr("Time of a rollout until every row has its first token"),
                      Quantity::seconds, measured_rollout(&SizePoint::Measured::prefill_seconds)),
      quantity_column(QObject::tr("Step"), QObject::tr("Time of a rollout for one more token of every row"),
                      Quantity::seconds, measured_rollout(&SizePoint::Measured::step_seconds))};
  for (const MemoryCategory category : all_values<MemoryCategory>()) columns.push_back(category_column(category));
  return columns;
}

}  // namespace

SizesModel::SizesModel()
    : TableModel(size_columns(), [this](const SizePoint& p, int column, int role) -> QVariant {
        const bool is_time = column == time || column == per_token || column == speed;
        const bool estimate = column == predicted || ((column >= categories || is_time) && !p.measured);
        if (role == Qt::ForegroundRole && column == result && !refusal_text(p).isEmpty()) return theme().bad;
        if (!estimate) return {};
        if (role == Qt::ForegroundRole) return theme().muted;
        if (role == Qt::ToolTipRole) return tr("%1, predicted").arg(text(p, column));
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
  set_rows(std::move(now), [](const SizePoint& a, const SizePoint& b) {
    return a.workload == b.workload && a.adapters == b.adapters && a.batch == b.batch;
  });
}

bool SizesModel::is_column_used(int column) const {
  return column < categories ||
         (view_ && view_->category_most.bytes[static_cast<size_t>(column - categories)].value > 0);
}

}  // namespace mw::ui
