// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/envelope_tab.h"

#include <QComboBox>

#include "ui/pages/serve/run_tab.h"
#include "ui/run_views/run_lines.h"

namespace mw::ui {
namespace {

QString metric_name(jobs::EnvelopeMetric metric) {
  static constexpr const char* kNames[] = {
      QT_TRANSLATE_NOOP("QObject", "Median TTFT"), QT_TRANSLATE_NOOP("QObject", "p99 TTFT"),
      QT_TRANSLATE_NOOP("QObject", "Median TPOT"), QT_TRANSLATE_NOOP("QObject", "p99 TPOT"),
      QT_TRANSLATE_NOOP("QObject", "Median E2E"),  QT_TRANSLATE_NOOP("QObject", "p99 E2E")};
  return QObject::tr(kNames[static_cast<size_t>(metric)]);
}

std::vector<SettingsRow::Setting> envelope_settings() {
  return {{"sweep.request_rates", EnvelopeTab::tr("Rates (requests/s)"), 6},
          {"sweep.input_lens", EnvelopeTab::tr("Prompts (tokens)"), 5},
          {"sweep.output_len", EnvelopeTab::tr("Output (tokens)"), 5},
          {"sweep.num_prompts", EnvelopeTab::tr("Requests"), 4},
          {"sweep.repeats", EnvelopeTab::tr("Repeats"), 3},
          {"sweep.seed", EnvelopeTab::tr("Seed"), 3}};
}

QString interval_text(const serve::MeanInterval& interval) {
  if (!std::isfinite(interval.mean)) return {};
  return EnvelopeTab::tr("%1 (%2 to %3)")
      .arg(value_text(interval.mean / 1e3, AxisQuantity::seconds),
           value_text(std::max(0.0, interval.low) / 1e3, AxisQuantity::seconds),
           value_text(interval.high / 1e3, AxisQuantity::seconds));
}

QString rate_text(double rate) {
  return std::isinf(rate) ? EnvelopeTab::tr("burst") : qs(number_text(rate));
}

TableModel<jobs::EnvelopePoint>::Columns envelope_columns(const jobs::EnvelopeRuns& runs) {
  using Table = TableModel<jobs::EnvelopePoint>;
  const auto names = std::make_shared<const std::vector<jobs::EnvelopeMesh>>(runs.meshes);
  Table::Columns columns{Table::number_of(EnvelopeTab::tr("Rate (requests/s)"), &jobs::EnvelopePoint::rate, rate_text),
                         {.title = EnvelopeTab::tr("Best mesh"),
                          .tooltip = EnvelopeTab::tr("Not clear: another mesh may be as good at 95 % confidence"),
                          .text = [names](const auto& p) {
                            const QString name = qs((*names)[p.best].name);
                            return p.is_clear ? name : EnvelopeTab::tr("%1 (not clear)").arg(name);
                          }}};
  for (size_t m = 0; m < runs.meshes.size(); ++m) {
    if (!runs.meshes[m].refusal.empty()) continue;
    columns.push_back(Table::number(
        qs(runs.meshes[m].name),
        [m](const auto& p) {
          const QString text = interval_text(p.meshes[m]);
          return p.overloaded[m] ? EnvelopeTab::tr("%1, overloaded").arg(text) : text;
        },
        [m](const auto& p) { return p.meshes[m].mean / 1e3; }));
    columns.back().unit = u"seconds"_s;
  }
  return columns;
}

// The axis of the rates, and the place of each.
struct RateAxis {
  std::vector<Tick> stops;
  std::vector<double> places;
};
RateAxis rate_axis(const std::vector<double>& rates) {
  views::LoadAxis axis;
  for (const double rate : rates) axis.add_rate(rate);
  RateAxis out{ticks_of(axis), {}};
  for (const double rate : rates) {
    formats::BenchPoint point;
    point.request_rate = rate;
    out.places.push_back(axis.place(point));
  }
  return out;
}

ChartLine mesh_line(const jobs::EnvelopeRuns& runs, const jobs::EnvelopeLine& line, const RateAxis& axis, size_t mesh) {
  auto mean = std::make_shared<views::Series>(), low = std::make_shared<views::Series>(),
       high = std::make_shared<views::Series>();
  for (size_t i = 0; i < line.points.size(); ++i) {
    const serve::MeanInterval& interval = line.points[i].meshes[mesh];
    mean->append(axis.places[i], interval.mean / 1e3);
    low->append(axis.places[i], std::max(interval.low, 0.05 * interval.mean) / 1e3);  // the axis is logarithmic
    high->append(axis.places[i], interval.high / 1e3);
  }
  const int at = static_cast<int>(mesh);
  return {.name = qs(runs.meshes[mesh].name),
          .color = theme().series(at),
          .raw = std::move(mean),
          .origin = LineOrigin::predicted,
          .marks = marks_of(at),
          .low = std::move(low),
          .high = std::move(high),
          .group = at};
}

// The lower envelope of the meshes, drawn above their lines.
ChartLine best_line(const jobs::EnvelopeLine& line, const RateAxis& axis) {
  auto best = std::make_shared<views::Series>();
  for (size_t i = 0; i < line.points.size(); ++i)
    best->append(axis.places[i], line.points[i].meshes[line.points[i].best].mean / 1e3);
  return {
      .name = EnvelopeTab::tr("best"), .color = theme().text, .raw = std::move(best), .origin = LineOrigin::requested};
}

std::vector<LevelLine> crossover_limits(const jobs::EnvelopeRuns& runs, const jobs::EnvelopeLine& line) {
  std::vector<LevelLine> limits;
  for (const jobs::Crossover& c : line.crossovers)
    limits.push_back(
        {.name = u"\u2192 "_s + qs(runs.meshes[c.to].name),
         .value = std::log2(c.rate),
         .color = theme().series(static_cast<int>(c.to)),
         .origin = LineOrigin::predicted,
         .text = EnvelopeTab::tr("%1/s (%2 to %3)")
                     .arg(qs(number_text(c.rate, 3)), qs(number_text(c.low, 3)), qs(number_text(c.high, 3)))});
  return limits;
}

}  // namespace

void EnvelopeModel::show(const jobs::EnvelopeRuns& runs, const std::vector<jobs::EnvelopePoint>& points) {
  set_table(envelope_columns(runs), points);
}

EnvelopeTab::EnvelopeTab(Document& document, plan::LoadContext context, QWidget* parent)
    : QWidget(parent), document_(document), context_(std::move(context)) {
  setObjectName(u"pageBody"_s);
  link_.set_x(tr("rate (requests/s)"), AxisQuantity::plain);
  build();
  connect(&document_, &Document::changed, this, [this] { changed_ = true; });
  connect(&note_task_, &BackgroundWork::ended, this, [this] {
    if (note_task_.problem()) note_->setText(qs(to_text(*note_task_.problem())));
    if (note_task_.result()) note_->setText(qs(*note_task_.result()));
  });
  connect(&task_, &BackgroundWork::changed, this, &EnvelopeTab::show_progress);
  connect(&task_, &BackgroundWork::ended, this, &EnvelopeTab::take_result);
  for (QComboBox* box : {metric_, length_})
    connect(box, &QComboBox::currentIndexChanged, this, &EnvelopeTab::show_envelope);
}

void EnvelopeTab::build() {
  auto* column = make_layout<QVBoxLayout>(this, {8, 4, 8, 6}, 4);
  form_ = new SettingsRow(document_, envelope_settings(), this);
  auto* top = new QHBoxLayout;
  top->addWidget(form_, 1);
  start_ = add_button(*top, tr("Simulate"), tr("Simulate these loads on every mesh of the target"), Glyph::run);
  stop_ = add_button(*top, tr("Stop"), tr("Stop the simulation"), Glyph::stop);
  for (QPushButton* button : {start_, stop_}) top->setAlignment(button, Qt::AlignBottom);
  column->addLayout(top);
  note_ = new ElidedLabel(Qt::ElideRight, this);
  note_->setProperty("muted", true);
  note_->setAccessibleName(tr("What is simulated, and how well a percentile is known"));
  column->addWidget(note_);
  auto* bar = make_layout<QHBoxLayout>(nullptr, {2, 0, 0, 0}, 6);
  verdict_ = new ElidedLabel(Qt::ElideRight, this);
  verdict_->setAccessibleName(tr("Rates at which the best mesh changes"));
  bar->addWidget(verdict_, 1);
  add_labelled(*bar, tr("Prompt"), length_ = new QComboBox);
  length_->setSizeAdjustPolicy(QComboBox::AdjustToContents);  // it is filled later
  add_labelled(*bar, tr("Latency"), metric_ = new QComboBox);
  for (const auto metric : all_values<jobs::EnvelopeMetric>()) metric_->addItem(metric_name(metric));
  metric_->setCurrentIndex(static_cast<int>(jobs::EnvelopeMetric::p99_ttft));
  column->addLayout(bar);
  auto* rows = make_splitter(Qt::Vertical, this);
  chart_ = new Chart(
      {.title = metric_name(jobs::EnvelopeMetric::p99_ttft),
       .unit = tr("95 % interval over the repeats, predicted"),
       .quantity = AxisQuantity::seconds,
       .empty = tr("Simulate plays the loads above on every legal mesh and replicas of the target, each with several "
                   "seeds,\nand shows which mesh is the best at each rate")},
      link_, rows);
  chart_->set_scale(Scale::logarithmic);
  chart_->setMinimumHeight(kChartHeight);
  connect(chart_, &Chart::group_hovered, chart_, &Chart::set_emphasis);
  table_ = make_table(model_, tr("Best mesh by rate"), rows);
  table_->horizontalHeader()->setStretchLastSection(true);
  copy_on_ctrl_c(*table_);
  rows->setChildrenCollapsible(false);
  set_shares(*rows, {360, 180}, {2, 1});
  column->addWidget(rows, 1);
  connect(start_, &QPushButton::clicked, this, &EnvelopeTab::simulate);
  connect(stop_, &QPushButton::clicked, this, &EnvelopeTab::stop);
  show_progress();
}

QString EnvelopeTab::note() const {
  return note_->text();
}

QString EnvelopeTab::verdict() const {
  return verdict_->text();
}

bool EnvelopeTab::is_outdated() const {
  return runs_ && !(simulated_ == document_.experiment());
}

void EnvelopeTab::show_frame() {
  if (!isVisible() || !std::exchange(changed_, false)) return;
  if (!(noted_ == document_.experiment()) || note_->text().isEmpty()) read_note();
  show_envelope();
}

// Checks every mesh, which takes too long for a keystroke.
void EnvelopeTab::read_note() {
  noted_ = document_.experiment();
  note_task_.start([experiment = noted_, load = context_](const ReportProgress&, const std::stop_token&) {
    return jobs::envelope_note(jobs::envelope_plan(experiment, *load()));
  });
}

void EnvelopeTab::simulate() {
  if (is_busy()) return;
  simulated_ = document_.experiment();
  task_.start([experiment = simulated_, load = context_](const ReportProgress& report, const std::stop_token& stop) {
    return jobs::simulate_envelope(
        experiment, *load(),
        [&](std::int64_t done, std::int64_t total) {
          report({"simulating", done, total});
        },
        stop);
  });
}

void EnvelopeTab::take_result() {
  if (task_.problem()) emit problem(*task_.problem());
  runs_.reset();
  if (task_.result()) runs_ = std::move(*task_.result());
  const QSignalBlocker quiet(length_);
  const QString before = length_->currentText();
  length_->clear();
  if (runs_)
    for (const int len : runs_->input_lens) length_->addItem(tr("%n token(s)", nullptr, len));
  length_->setCurrentIndex(std::max(0, length_->findText(before)));
  show_progress();
  show_envelope();
}

void EnvelopeTab::show_progress() {
  start_->setEnabled(!is_busy());
  stop_->setEnabled(is_busy() && !task_.is_cancelling());
  length_->setEnabled(runs_.has_value());
  if (is_busy()) verdict_->setText(tr("%1  \u00B7  %2 %").arg(qs(task_.progress().phase)).arg(task_.percent()));
  emit busy_changed();
}

void EnvelopeTab::show_envelope() {
  const auto metric = static_cast<jobs::EnvelopeMetric>(std::max(0, metric_->currentIndex()));
  if (!runs_) {
    chart_->set_lines({});
    chart_->set_limits({});
    model_.clear();
    if (!is_busy()) verdict_->setText(task_.problem() ? qs(to_text(*task_.problem())) : QString());
    return;
  }
  const std::vector<jobs::EnvelopeLine> all = envelope(*runs_, metric);
  const auto& line =
      all[static_cast<size_t>(std::clamp<int>(length_->currentIndex(), 0, static_cast<int>(all.size()) - 1))];
  const RateAxis axis = rate_axis(runs_->rates);
  link_.set_data(range_of(axis.stops));
  link_.set_stops(axis.stops);
  std::vector<ChartLine> lines;
  for (size_t m = 0; m < runs_->meshes.size(); ++m)
    if (runs_->meshes[m].refusal.empty()) lines.push_back(mesh_line(*runs_, line, axis, m));
  lines.push_back(best_line(line, axis));
  chart_->set_title(metric_name(metric));
  chart_->set_lines(std::move(lines));
  chart_->set_limits(crossover_limits(*runs_, line));
  QStringList refused;
  for (const jobs::EnvelopeMesh& mesh : runs_->meshes)
    if (!mesh.refusal.empty()) refused << tr("%1 %2").arg(qs(mesh.name), qs(mesh.refusal));
  chart_->set_notes({}, refused.join(u"; "_s));
  model_.show(*runs_, line.points);
  for (int c = 0; c + 1 < model_.columnCount(); ++c) table_->resizeColumnToContents(c);
  if (is_busy()) return;
  QStringList parts;
  if (is_outdated()) parts << tr("Settings have changed since this simulation");
  for (const jobs::Crossover& c : line.crossovers)
    parts << tr("Best mesh changes %1").arg(qs(crossover_text(*runs_, c)));
  if (line.crossovers.empty())
    parts << tr("%1 is the best at every finite rate").arg(qs(runs_->meshes[line.points.front().best].name));
  verdict_->setText(parts.join(u"  \u00B7  "_s));
}

}  // namespace mw::ui

#include "moc_envelope_tab.cpp"
