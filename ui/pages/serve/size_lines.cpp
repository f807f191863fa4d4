// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/size_lines.h"

#include "ui/run_views/run_lines.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

// Shows the capacity if the measured bars reach at least a quarter of it.
constexpr double kMostEmpty = 4, kAboveCapacity = 1.2;

double place(int batch) {
  return std::log2(static_cast<double>(batch));
}

double as_double(Bytes bytes) {
  return static_cast<double>(bytes.value);
}

QColor color_of(const views::SizeView::Line& line) {
  const QColor color = theme().series(static_cast<int>(line.workload));
  return line.adapters ? mix(theme().text, color, 0.6) : color;
}

QString name_of(const views::SizeView::Line& line) {
  const QString workload = short_text(line.workload);
  return line.adapters ? QObject::tr("%1, LoRA").arg(workload) : workload;
}

bool has_time(const serve::MeasuredSize& point) {
  return point.measured || point.predicted_time;
}

// The measured value if there is one, otherwise the predicted one; the chart distinguishes them.
const Ledger& memory_of(const serve::MeasuredSize& point) {
  return point.measured ? point.measured->memory : point.predicted;
}

QString need_text(const serve::MeasuredSize& point) {
  return qs(to_text(point.predicted.total()));
}

double top_of(const views::SizeView& view) {
  const double highest = as_double(view.highest), refused = as_double(view.largest_refused);
  if (refused == 0 || !view.capacity) return highest;
  const double capacity = as_double(*view.capacity);
  if (highest > 0 && capacity > kMostEmpty * highest) return highest * kAboveCapacity;
  return std::max(highest, std::min(refused, capacity * kAboveCapacity));
}

}  // namespace

QString workload_text(options::Workload workload) {
  static constexpr const char* kTexts[] = {QT_TRANSLATE_NOOP("QObject", "Rollout"),
                                           QT_TRANSLATE_NOOP("QObject", "Forward, full logits"),
                                           QT_TRANSLATE_NOOP("QObject", "Forward, chunked top-k")};
  return QObject::tr(kTexts[static_cast<size_t>(workload)]);
}

QString short_text(options::Workload workload) {
  static constexpr const char* kTexts[] = {QT_TRANSLATE_NOOP("QObject", "Rollout"),
                                           QT_TRANSLATE_NOOP("QObject", "Forward"),
                                           QT_TRANSLATE_NOOP("QObject", "Chunked")};
  return QObject::tr(kTexts[static_cast<size_t>(workload)]);
}

QString refusal_text(const serve::MeasuredSize& point) {
  if (has_time(point)) return {};
  if (point.fits())
    return point.error.empty() ? QObject::tr("not measured") : QObject::tr("failed: %1").arg(qs(point.error));
  const QString need = need_text(point);
  if (point.largest_batch == 0)
    return QObject::tr("does not fit: needs %1; no smaller batch fits either (predicted)").arg(need);
  return QObject::tr("does not fit: needs %1, largest that fits %2 (predicted)").arg(need).arg(point.largest_batch);
}

BatchAxis batch_axis(const std::vector<int>& batches) {
  BatchAxis axis{{}, {0, 1}};
  for (const int batch : batches) axis.stops.push_back({place(batch), QString::number(batch)});
  if (!axis.stops.empty()) axis.range = {axis.stops.front().value - 0.5, axis.stops.back().value + 0.5};
  return axis;
}

std::vector<ChartLine> size_lines(const views::SizeView& view, SizeTime time, const QString& prefix) {
  std::vector<ChartLine> lines;
  for (const auto& line : view.lines) {
    auto series = std::make_shared<views::Series>(), low = std::make_shared<views::Series>(),
         high = std::make_shared<views::Series>();
    for (const auto& p : line.points) {
      if (!has_time(p)) continue;
      const auto tokens = static_cast<double>(p.measured ? p.measured->tokens : p.predicted_time->tokens);
      const double share = time == SizeTime::per_token ? 1 / tokens : 1;
      series->append(place(p.batch), share * (p.measured ? p.measured->seconds : p.predicted_time->seconds));
      if (!p.predicted_time) continue;
      low->append(place(p.batch), share * p.predicted_time->low);
      high->append(place(p.batch), share * p.predicted_time->high);
    }
    lines.push_back({.name = prefix + name_of(line),
                     .color = color_of(line),
                     .raw = std::move(series),
                     .origin = view.is_predicted ? LineOrigin::predicted : LineOrigin::measured,
                     .marks = marks_of(static_cast<int>(line.workload))});
    if (low->empty()) continue;
    lines.back().low = std::move(low);
    lines.back().high = std::move(high);
  }
  return lines;
}

Notes time_notes(const views::SizeView& view) {
  Notes notes;
  bool refused = false, failed = false;
  for (const auto& line : view.lines)
    for (const auto& p : line.points) {
      if (has_time(p)) continue;
      notes.marks.push_back({place(p.batch), color_of(line)});
      (p.fits() ? failed : refused) = true;
    }
  if (refused && failed)
    notes.caption = QObject::tr("\u2715 Predicted not to fit, or failed: the table says why");
  else if (refused)
    notes.caption = QObject::tr("\u2715 Predicted not to fit");
  else if (failed)
    notes.caption = QObject::tr("\u2715 Failed: the table says why");
  return notes;
}

ChartStack size_stack(const SizeViewPtr& view, const views::SizeView::Line* line) {
  ChartStack stack;
  if (!line || line->points.empty()) return stack;
  stack.shape = Shape::bars;
  for (const MemoryCategory category : all_values<MemoryCategory>()) {
    stack.layers.emplace_back(category_text(category), theme().memory(category));
  }
  const auto nearest = [view, line](double x) -> const serve::MeasuredSize& {
    return *std::min_element(line->points.begin(), line->points.end(), [x](const auto& a, const auto& b) {
      return std::abs(place(a.batch) - x) < std::abs(place(b.batch) - x);
    });
  };
  stack.sample = [view, line](double x0, double x1, int) {
    StackSamples out;
    out.values.resize(kMemoryCategories);
    for (const auto& p : line->points) {
      if (place(p.batch) < x0 || place(p.batch) > x1) continue;
      out.x.push_back(place(p.batch));
      for (size_t c = 0; c < kMemoryCategories; ++c) out.values[c].push_back(as_double(memory_of(p).bytes[c]));
    }
    return out;
  };
  stack.at = [nearest](double x) {
    std::vector<double> out;
    for (const Bytes b : memory_of(nearest(x)).bytes) out.push_back(as_double(b));
    return out;
  };
  stack.highest = [view](double, double) { return top_of(*view); };
  stack.origin = [nearest](double x) { return nearest(x).measured ? LineOrigin::measured : LineOrigin::predicted; };
  return stack;
}

std::vector<LevelLine> size_levels(const views::SizeView& view) {
  if (!view.capacity) return {};
  return {{QObject::tr("capacity"), as_double(*view.capacity), theme().bad, LineOrigin::measured}};
}

Notes memory_notes(const views::SizeView& view, const views::SizeView::Line* line) {
  Notes notes;
  if (!line) return notes;
  for (const auto& p : line->points) {
    if (has_time(p)) continue;
    notes.marks.push_back({place(p.batch), theme().bad});
    if (notes.marks.size() == 1)  // the smallest one
      notes.caption = p.fits() ? QObject::tr("\u2715 %1 failed: the table says why").arg(p.batch)
                      : p.largest_batch == 0
                          ? QObject::tr("\u2715 Predicted: %1 needs %2, none fits").arg(p.batch).arg(need_text(p))
                          : QObject::tr("\u2715 Predicted: %1 needs %2, largest fit %3")
                                .arg(p.batch)
                                .arg(need_text(p))
                                .arg(p.largest_batch);
  }
  // Also shown if the chart of another workload has such a line, so that all have the same height.
  if (notes.marks.empty() && view.largest_refused.value > 0 && !line->points.empty())
    notes.caption = QObject::tr("Every batch fits");
  return notes;
}

namespace {

using serve::MeasuredSize;
using SizeColumn = TableColumn<MeasuredSize>;
using Value = std::function<std::optional<double>(const MeasuredSize&)>;

// A number with its unit; empty if the point has none.
SizeColumn quantity_column(const QString& title, const QString& tooltip, AxisQuantity quantity, Value value) {
  return {.title = title,
          .unit = quantity == AxisQuantity::bytes     ? u"bytes"_s
                  : quantity == AxisQuantity::seconds ? u"seconds"_s
                                                      : QString(),
          .tooltip = tooltip,
          .alignment = Qt::AlignRight,
          .text =
              [value, quantity](const MeasuredSize& p) {
                const auto v = value(p);
                return !v ? QString() : quantity == AxisQuantity::plain ? qs(count_text(*v)) : value_text(*v, quantity);
              },
          .sort_key =
              [value](const MeasuredSize& p) {
                const auto v = value(p);
                return v ? QVariant(*v) : QVariant();
              }};
}

// Returns a function that applies `value` to the measured time of a point or, without one, to the predicted time.
template <class Function>
Value time_value(Function value) {
  return [value](const MeasuredSize& p) -> std::optional<double> {
    if (p.measured) return value(*p.measured);
    return p.predicted_time ? std::optional(value(*p.predicted_time)) : std::nullopt;
  };
}

QString result_text(const MeasuredSize& p) {
  if (p.measured) return QObject::tr("measured, median of %1").arg(p.measured->repeats);
  if (!p.predicted_time) return refusal_text(p);
  const auto& time = *p.predicted_time;
  return QObject::tr("predicted, %1 to %2 (%3)")
      .arg(value_text(time.low, AxisQuantity::seconds), value_text(time.high, AxisQuantity::seconds),
           qs(to_string(time.origin)));
}

Value measured_rollout(double MeasuredSize::Measured::*member) {
  return [member](const MeasuredSize& p) {
    const bool has = p.measured && p.workload == options::Workload::rollout;
    return has ? std::optional((*p.measured).*member) : std::nullopt;
  };
}

SizeColumn category_column(MemoryCategory category) {
  const QString name = category_text(category);
  return quantity_column(name.startsWith(u"kv "_s) ? QString(u"KV"_s + name.mid(2)) : capitalized(name),
                         QObject::tr("Memory of %1 at the peak of the total; italic: predicted").arg(name),
                         AxisQuantity::bytes, [category](const MeasuredSize& p) {
                           return static_cast<double>((p.measured ? p.measured->memory : p.predicted)[category].value);
                         });
}

std::vector<SizeColumn> size_columns() {
  std::vector<SizeColumn> columns{
      {.title = QObject::tr("Workload"),
       .text =
           [](const MeasuredSize& p) {
             return p.adapters ? QObject::tr("%1, LoRA").arg(workload_text(p.workload)) : workload_text(p.workload);
           },
       .sort_key =
           [](const MeasuredSize& p) {
             return p.adapters ? QString(qs(to_string(p.workload)) + u"+lora"_s) : qs(to_string(p.workload));
           }},
      quantity_column(QObject::tr("Batch"), QObject::tr("Rows in the batch"), AxisQuantity::count,
                      [](const MeasuredSize& p) { return p.batch; }),
      quantity_column(QObject::tr("Time"), QObject::tr("Time of the whole batch; italic: predicted"),
                      AxisQuantity::seconds, time_value([](const auto& t) { return t.seconds; })),
      quantity_column(QObject::tr("Time/token"),
                      QObject::tr("Time per generated token of a rollout or per scored token of a forward pass"),
                      AxisQuantity::seconds, time_value([](const auto& t) { return t.seconds_per_token(); })),
      quantity_column(QObject::tr("Tokens/s"), QObject::tr("Tokens per second of all rows"), AxisQuantity::plain,
                      time_value([](const auto& t) { return t.tokens_per_second(); })),
      quantity_column(QObject::tr("Peak"), QObject::tr("Measured peak memory"), AxisQuantity::bytes,
                      [](const MeasuredSize& p) {
                        return p.measured ? std::optional(static_cast<double>(p.measured->memory.total().value))
                                          : std::nullopt;
                      }),
      quantity_column(QObject::tr("Predicted peak"), QObject::tr("Peak memory predicted before the measurement"),
                      AxisQuantity::bytes,
                      [](const MeasuredSize& p) { return static_cast<double>(p.predicted.total().value); }),
      {.title = QObject::tr("Result"),
       .tooltip = QObject::tr("Whether the point was measured or predicted, or why it has no time"),
       .text = result_text},
      quantity_column(QObject::tr("Prefill"), QObject::tr("Time of a rollout until every row has its first token"),
                      AxisQuantity::seconds, measured_rollout(&MeasuredSize::Measured::prefill_seconds)),
      quantity_column(QObject::tr("Step"), QObject::tr("Time of a rollout for one more token of every row"),
                      AxisQuantity::seconds, measured_rollout(&MeasuredSize::Measured::step_seconds))};
  for (const MemoryCategory category : all_values<MemoryCategory>()) columns.push_back(category_column(category));
  return columns;
}

}  // namespace

SizesModel::SizesModel()
    : TableModel(size_columns(), [this](const MeasuredSize& p, int column, int role) -> QVariant {
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
  std::vector<MeasuredSize> now;
  if (view)
    for (const auto& line : view->lines) now.insert(now.end(), line.points.begin(), line.points.end());
  view_ = std::move(view);
  set_rows(std::move(now), [](const MeasuredSize& a, const MeasuredSize& b) {
    return a.workload == b.workload && a.adapters == b.adapters && a.batch == b.batch;
  });
}

bool SizesModel::is_column_used(int column) const {
  return column < categories ||
         (view_ && view_->category_most.bytes[static_cast<size_t>(column - categories)].value > 0);
}

}  // namespace mw::ui
