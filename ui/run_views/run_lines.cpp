// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/run_views/run_lines.h"

#include <cmath>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

void add_line(std::vector<ChartLine>& lines, const RunPtr& run, const std::string& metric, const QString& name,
              int color, bool smooth, Marks marks) {
  const views::MetricSeries* m = run->view.metric(metric);
  if (!m) return;
  ChartLine line{.name = name, .color = theme().series(color), .raw = {run, &m->raw}, .marks = marks};
  if (smooth && run->view.smoothing() > 0) line.smooth = {run, &m->smooth.series()};
  lines.push_back(std::move(line));
}

}  // namespace

std::vector<ChartLine> loss_lines(const RunPtr& run) {
  std::vector<ChartLine> lines;
  if (!run) return lines;
  add_line(lines, run, "train/loss", QObject::tr("train"), 0, true, Marks::none);
  add_line(lines, run, "eval/loss", QObject::tr("eval"), 1, false, Marks::points);
  return lines;
}

std::vector<ChartLine> metric_line(const RunPtr& run, const std::string& metric, const QString& name, int color,
                                   bool smooth) {
  std::vector<ChartLine> lines;
  if (run) add_line(lines, run, metric, name, color, smooth, Marks::none);
  return lines;
}

ChartLine answers_line(const std::vector<store::ScoredAnswers>& answers) {
  const auto share = std::make_shared<views::Series>(), low = std::make_shared<views::Series>(),
             high = std::make_shared<views::Series>();
  for (const store::ScoredAnswers& a : answers) {
    const auto [least, most] = a.interval();
    share->append(static_cast<double>(a.step), 100 * a.share());
    low->append(static_cast<double>(a.step), 100 * least);
    high->append(static_cast<double>(a.step), 100 * most);
  }
  return {.name = answers.empty() ? QString() : qs(to_text(answers.back())),
          .color = theme().series(1),
          .raw = share,
          .marks = Marks::points,
          .low = low,
          .high = high};
}

ChartStack memory_stack(const RunPtr& run, int device) {
  ChartStack stack;
  if (!run || !run->view.memory().contains(device)) return stack;
  for (const MemoryCategory category : all_values<MemoryCategory>()) {
    stack.layers.emplace_back(category_text(category), theme().memory(category));
  }
  const auto timeline = [run, device]() -> const views::MemoryTimeline* {
    const auto at = run->view.memory().find(device);
    return at == run->view.memory().end() ? nullptr : &at->second;
  };
  stack.sample = [timeline](double x0, double x1, int columns) {
    StackSamples out;
    const auto* t = timeline();
    if (!t) return out;
    out.values.resize(kMemoryCategories);
    for (const size_t i : t->decimate(views::Against::time, x0, x1, columns)) {
      out.x.push_back(t->points[i].time_s);
      for (size_t c = 0; c < kMemoryCategories; ++c)
        out.values[c].push_back(static_cast<double>(t->points[i].bytes.bytes[c].value));
    }
    return out;
  };
  stack.at = [timeline](double x) {
    std::vector<double> out;
    const auto* t = timeline();
    const auto i = t ? t->total(views::Against::time).nearest(x) : std::nullopt;
    if (!i) return out;
    for (const Bytes b : t->points[*i].bytes.bytes) out.push_back(static_cast<double>(b.value));
    return out;
  };
  stack.highest = [timeline](double x0, double x1) {
    const auto* t = timeline();
    const auto range = t ? t->total(views::Against::time).y_range(x0, x1) : std::nullopt;
    return range ? range->max : 0.0;
  };
  return stack;
}

ChartStack traffic_stack(const RunPtr& run, views::TrafficBy by, views::TrafficAmount amount) {
  ChartStack stack;
  if (!run || run->view.traffic().empty()) return stack;
  int color = 0;
  for (const std::string& layer : run->view.traffic().layers(by, amount)) {
    const bool waiting = amount == views::TrafficAmount::seconds && layer == "waiting";
    stack.layers.emplace_back(qs(layer), waiting ? theme().faint : theme().series(color++));
  }
  stack.sample = [run, by, amount](double x0, double x1, int columns) {
    const views::TrafficTimeline& t = run->view.traffic();
    StackSamples out;
    out.values.resize(t.layers(by, amount).size());
    for (const size_t i : t.total(amount).decimate_indices(x0, x1, columns)) {
      out.x.push_back(static_cast<double>(t.points[i].step));
      const auto values = t.split(i, by, amount);
      for (size_t layer = 0; layer < values.size(); ++layer) out.values[layer].push_back(values[layer]);
    }
    return out;
  };
  stack.at = [run, by, amount](double x) {
    const views::TrafficTimeline& t = run->view.traffic();
    const auto i = t.total(amount).nearest(x);
    return i ? t.split(*i, by, amount) : std::vector<double>();
  };
  stack.highest = [run, amount](double x0, double x1) {
    const auto range = run->view.traffic().total(amount).y_range(x0, x1);
    return range ? range->max : 0.0;
  };
  return stack;
}

std::vector<LevelLine> memory_levels(const RunPtr& run, int device) {
  std::vector<LevelLine> levels;
  if (!run) return levels;
  if (const auto capacity = run->view.capacity())
    levels.push_back(
        {QObject::tr("capacity"), static_cast<double>(capacity->value), theme().bad, LineOrigin::measured});
  if (const auto predicted = run->view.predicted(device))
    levels.push_back({QObject::tr("predicted peak"), static_cast<double>(predicted->total().value), theme().text,
                      LineOrigin::predicted});
  return levels;
}

namespace {

// The recipe or program that executes the run; empty: this program.
QString runs_elsewhere(const views::RunView& view) {
  const Json& info = view.info();
  const auto text = [&](const Json& of, const char* key) {
    return of.is_object() && of.contains(key) && of[key].is_string() ? qs(of[key].get<std::string>()) : QString();
  };
  if (text(info, "source") != u"imported"_s) return {};
  for (const QString& name : {info.contains("launched") ? text(info["launched"], "recipe") : QString(),
                              text(info, "software"), text(info, "tool")})
    if (!name.isEmpty()) return name;
  return QObject::tr("its program");
}

}  // namespace

QString absent_text(const RunPtr& run, Comes with) {
  const bool model = with == Comes::with_the_model;
  const QString who = run ? runs_elsewhere(run->view) : QString();
  const bool ended = run && run->view.ended(), stepped = run && run->view.step() > 0;
  if (who.isEmpty() && ended)
    return model ? QObject::tr("The run ended before its model was loaded")
                 : QObject::tr("The run ended before its first step");
  if (who.isEmpty())
    return model ? QObject::tr("Appears when the model is loaded") : QObject::tr("Appears with the first step");
  if (ended || stepped) return QObject::tr("Not reported by %1").arg(who);
  return QObject::tr("Appears if %1 reports it").arg(who);
}

QString category_text(MemoryCategory category) {
  QString name = qs(to_string(category));
  return name.replace(u'_', u' ');
}

namespace {

double slo_of(const options::Slo& slo, views::SweepMetric metric) {
  return metric == views::SweepMetric::ttft   ? slo.ttft_ms
         : metric == views::SweepMetric::tpot ? slo.tpot_ms
         : metric == views::SweepMetric::e2el ? slo.e2e_ms
                                              : 0;
}

}  // namespace

LineOrigin origin_of(formats::ResultProvenance provenance) {
  static constexpr LineOrigin kOrigins[] = {LineOrigin::measured, LineOrigin::predicted, LineOrigin::imported};
  return kOrigins[static_cast<size_t>(provenance)];
}

QString origin_text(formats::ResultProvenance provenance) {
  static constexpr const char* kTexts[] = {QT_TRANSLATE_NOOP("QObject", "measured"),
                                           QT_TRANSLATE_NOOP("QObject", "predicted"),
                                           QT_TRANSLATE_NOOP("QObject", "imported")};
  return QObject::tr(kTexts[static_cast<size_t>(provenance)]);
}

Marks marks_of(int index) {
  static constexpr Marks kMarks[] = {Marks::points, Marks::squares, Marks::triangles, Marks::diamonds};
  return kMarks[static_cast<size_t>(index) % std::size(kMarks)];
}

std::vector<Tick> ticks_of(const views::LoadAxis& axis) {
  std::vector<Tick> out;
  for (const auto& stop : axis.stops()) out.push_back({stop.place, qs(stop.label)});
  return out;
}

AxisRange range_of(const std::vector<Tick>& stops) {
  if (stops.empty()) return {0, 1};
  return {stops.front().value - 0.5, stops.back().value + 0.5};
}

ChartLine line_of(const std::vector<views::ChartSample>& samples, const QString& name, LineOrigin origin, int group) {
  auto value = std::make_shared<views::Series>(), low = std::make_shared<views::Series>(),
       high = std::make_shared<views::Series>();
  bool band = false;
  for (const auto& s : samples) {
    value->append(s.place, s.value);
    low->append(s.place, s.low);
    high->append(s.place, s.high);
    band |= s.high > s.low;
  }
  ChartLine line{.name = name,
                 .color = theme().series(group),
                 .raw = std::move(value),
                 .origin = origin,
                 .marks = marks_of(group),
                 .group = group};
  if (band) line.low = std::move(low), line.high = std::move(high);
  return line;
}

void add_flags(ChartLine& line, const std::vector<views::ChartSample>& samples,
               const std::vector<audit::AuditFinding>& findings, views::SweepMetric metric) {
  for (const auto& s : samples) {
    const audit::AuditFinding* worst = nullptr;
    for (const size_t i : s.points)
      if (const auto* f = views::worst_finding(findings, i, to_string(metric)))
        if (!worst || f->verdict > worst->verdict) worst = f;
    if (worst && std::isfinite(s.value))
      line.flags.push_back({s.place, s.value, worst->verdict == audit::Verdict::impossible ? theme().bad : theme().warn,
                            finding_text(*worst)});
  }
}

std::vector<ChartLine> sweep_lines(const views::SweepView& view, const views::LoadAxis& axis,
                                   views::SweepMetric metric) {
  std::vector<ChartLine> out;
  for (const views::SweepLine& line : view.lines) {
    const auto samples = views::samples_of(
        view.set, line.points, [&](const formats::BenchPoint& p) { return axis.place(p); }, metric);
    out.push_back(line_of(samples, QString::number(line.input_len), origin_of(view.set.provenance),
                          static_cast<int>(out.size())));
    add_flags(out.back(), samples, view.findings, metric);
  }
  return out;
}

ChartLine offered_line(const views::SweepView& view, const views::LoadAxis& axis) {
  auto series = std::make_shared<views::Series>();
  const int output = view.set.points.empty() ? 0 : view.set.points.front().output_len;
  for (const auto& stop : axis.stops())
    if (const auto rate = axis.rate_at(stop.place); rate && output > 0) series->append(stop.place, *rate * output);
  return {.name = QObject::tr("offered"),
          .color = theme().muted,
          .raw = std::move(series),
          .origin = LineOrigin::requested};
}

std::vector<LevelLine> slo_levels(const options::Slo& slo, views::SweepMetric metric) {
  const double limit = slo_of(slo, metric);
  if (limit <= 0) return {};
  return {{QObject::tr("SLO"), limit / 1e3, theme().good, LineOrigin::requested}};
}

std::vector<LevelLine> capacity_limits(const views::SweepView& view, size_t line) {
  std::vector<LevelLine> out;
  if (line >= view.lines.size()) return out;
  const auto add = [&](const QString& name, double rate, const QColor& color) {
    if (std::isfinite(rate) && rate > 0)
      out.push_back({name, std::log2(rate), color, LineOrigin::requested, QString::number(rate, 'g', 3)});
  };
  const serve::Capacity& capacity = view.lines[line].capacity;
  add(QObject::tr("knee"), capacity.knee, theme().muted);
  if (view.slo.any() && !capacity.beyond_last) add(QObject::tr("SLO met to"), capacity.at_slo, theme().good);
  return out;
}

QString finding_text(const audit::AuditFinding& f) {
  QString text = u"<b>%1</b> %2"_s.arg(qs(f.rule), qs(f.text).toHtmlEscaped());
  if (!f.formula.empty()) text += u"<br><span>%1</span>"_s.arg(qs(f.formula).toHtmlEscaped());
  return text;
}

}  // namespace mw::ui
