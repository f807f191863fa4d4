// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/run_views/sweep_lines.h"

#include <cmath>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
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
