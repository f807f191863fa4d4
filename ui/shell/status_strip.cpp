// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/status_strip.h"

#include <QPainter>
#include <algorithm>

#include "core/plan/prediction/plan_figures.h"
#include "ui/run_views/run_header.h"
#include "ui/run_views/run_lines.h"

namespace mw::ui {

// Predicted memory by category relative to the capacity; hatched, because it is not measured.
class MemoryBar : public QWidget {
 public:
  explicit MemoryBar(QWidget* parent) : QWidget(parent) { setFixedSize(150, 12); }
  void show_memory(const std::optional<Ledger>& at_peak, Bytes capacity, double opacity) {
    at_peak_ = at_peak;
    capacity_ = capacity;
    opacity_ = opacity;
    update();
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    const Theme& t = theme();
    painter.fillRect(rect(), mix(t.panel, t.text, 0.10));
    if (!at_peak_ || capacity_.value <= 0) return;
    painter.setOpacity(opacity_);
    const double whole = std::max(static_cast<double>(capacity_.value), static_cast<double>(at_peak_->total().value));
    double x = 0;
    for (const MemoryCategory category : all_values<MemoryCategory>()) {
      const double w = static_cast<double>((*at_peak_)[category].value) / whole * width();
      const QColor color = t.memory(category);
      painter.fillRect(QRectF(x, 0, w, height()), mix(t.panel, color, 0.55));
      painter.fillRect(QRectF(x, 0, w, height()), QBrush(color, Qt::BDiagPattern));
      x += w;
    }
    const double limit = static_cast<double>(capacity_.value) / whole * width();
    painter.fillRect(QRectF(std::min<double>(limit, width() - 2), 0, 2, height()), t.bad);
  }

 private:
  std::optional<Ledger> at_peak_;
  Bytes capacity_;
  double opacity_ = 1;
};

namespace {

QString sources_text(const Ledger& at_peak, const std::string& target, const std::string& instant,
                     const std::vector<std::string>& sources) {
  QString rows;
  for (const MemoryCategory category : all_values<MemoryCategory>()) {
    const Bytes b = at_peak[category];
    if (b.value == 0) continue;
    rows += u"<tr><td>%1</td><td align='right' style='padding-left:14px'>%2</td></tr>"_s.arg(category_text(category),
                                                                                             qs(to_text(b)));
  }
  QString notes;
  for (const auto& s : sources) notes += u"<li>"_s + qs(s).toHtmlEscaped() + u"</li>"_s;
  return StatusStrip::tr(
             "<p><b>Predicted peak on %1</b><br>largest at: %2</p><table>%3</table><p>Sources:</p><ul>%4</ul>")
      .arg(qs(target).toHtmlEscaped(), qs(instant).toHtmlEscaped(), rows, notes);
}

QString memory_text(const plan::Plan& plan_result) {
  const plan::DeviceMemory& memory = plan_result.memory;
  const double share = memory.at_peak.total() / memory.capacity * 100;
  return (plan_result.fits() ? memory.is_bound ? StatusStrip::tr("Fits: at most %1 of %2 (%3 %) per device")
                                               : StatusStrip::tr("Fits: %1 of %2 (%3 %) per device")
          : memory.is_bound ? StatusStrip::tr("May not fit: at most %1 of %2 (%3 %) per device")
                             : StatusStrip::tr("Does not fit: %1 of %2 (%3 %) per device"))
      .arg(qs(to_text(memory.at_peak.total())), qs(to_text(memory.capacity)))
      .arg(share, 0, 'f', share < 10 ? 1 : 0);
}

// "Fits: 27.1 GiB of 95.7 GiB (28 %) per device  \u00B7  9.8 s a step  \u00B7  3:20:00 (2:50:00 to 4:10:00), $56.90"
QString design_text(const views::Design& design) {
  const plan::Plan& plan_result = design.plan();
  if (!plan_result.refusals.empty())
    return StatusStrip::tr("Cannot run: %1").arg(qs(plan_result.refusals.front().message));
  QStringList parts{memory_text(plan_result)};
  parts << StatusStrip::tr("%1 per step").arg(qs(to_text(Seconds(plan_result.step.seconds.value))));
  if (design.request().work == plan::Work::train && plan::knows_steps(design.request())) {
    const plan::Estimate& hours = plan_result.run.hours;
    const auto duration = [](double h) { return qs(to_text(Seconds(h * 3600))); };
    QString run =
        hours.low < hours.high
            ? StatusStrip::tr("%1 (%2 to %3)").arg(duration(hours.value), duration(hours.low), duration(hours.high))
            : duration(hours.value);
    if (plan_result.run.usd_per_hour > 0) run += u", "_s + qs(to_text(Usd(plan_result.run.usd.value)));
    parts << run;
    if (!plan_result.run.utilisation.empty())
      parts << StatusStrip::tr("MFU %1 % (%2)")
                   .arg(plan_result.run.utilisation.front().share * 100, 0, 'f', 0)
                   .arg(qs(plan_result.run.utilisation.front().name));
  }
  return parts.join(u"  \u00B7  "_s);
}

}  // namespace

StatusStrip::StatusStrip(Predictor& predictor, RunController& runs, QWidget* parent)
    : QStatusBar(parent),
      predictor_(predictor),
      runs_(runs),
      bar_(new MemoryBar(this)),
      figures_(new ElidedLabel(Qt::ElideRight, this)),
      origin_(muted_label(tr("predicted"), this)),
      job_(new QLabel(this)),
      steps_(new QLabel(this)),
      eta_(new QLabel(this)),
      errors_(new ErrorLink(this)),
      sources_(flat_button(Glyph::info, tr("Sources of the predicted numbers"), this)),
      measure_(new QToolButton(this)) {
  setSizeGripEnabled(false);
  auto* left = new QWidget(this);
  auto* row = make_layout<QHBoxLayout>(left, {10, 2, 0, 2}, 9);
  row->addWidget(bar_);
  row->addWidget(figures_);
  row->addWidget(errors_);
  QFont italic = small_font();
  italic.setItalic(true);
  origin_->setFont(italic);
  row->addWidget(origin_);
  left->setMinimumHeight(sources_->sizeHint().height() + 4);  // keeps the height when the button is hidden
  row->addWidget(sources_);
  measure_->setProperty("flat", true);
  measure_->setText(tr("Measure"));
  measure_->setToolTip(tr("These times are those of similar processors: measure this machine for a narrower interval"));
  row->addWidget(measure_);
  row->addStretch(1);
  addWidget(left, 1);
  for (QLabel* label : {job_, steps_, eta_}) {
    label->setContentsMargins(0, 0, 10, 0);
    addPermanentWidget(label);
  }
  connect(sources_, &QToolButton::clicked, this, [this] {
    QToolTip::showText(sources_->mapToGlobal(QPoint(0, -10)), sources_->toolTip(), sources_, {}, 60000);
  });
  connect(&predictor_, &Predictor::changed, this, &StatusStrip::refresh);
  connect(&runs_, &RunController::shown_changed, this, &StatusStrip::refresh);
  connect(&runs_, &RunController::shown_updated, this, [this] {
    if (!prediction_known_) refresh();  // until the Started event with the prediction of the run
  });
  refresh();
}

QString StatusStrip::figures_text() const {
  return errors_->isHidden() ? figures_->text() : errors_->text();
}

QString StatusStrip::origin_text() const {
  return origin_->text();
}

void StatusStrip::set_kind(RunKind kind) {
  if (kind == kind_) return;
  kind_ = kind;
  refresh();
}

void StatusStrip::set_errors(int errors) {
  error_count_ = errors;
  errors_->set_errors(errors);
  refresh();
}

void StatusStrip::refresh() {
  const views::DesignPtr& design = predictor_.design();
  const bool of_sizes = design && design->request().work != plan::Work::train;
  const bool invalid = error_count_ > 0 && predictor_.has_no_prediction();
  if (kind_ != RunKind::train && !of_sizes && !invalid) return show_nothing();
  if (predictor_.has_no_prediction()) return show_no_prediction();
  if (design)
    show_design(*design);
  else
    show_text(tr("Memory: not predicted yet"), theme().muted);
  figures_->show();
  figures_->setToolTip({});
  origin_->setText(predicted_for());
  errors_->hide();
  show_figures(design != nullptr);
}

// The checker's errors are in the Problems panel; if the planner fails without one, its reason is shown here.
void StatusStrip::show_no_prediction() {
  const bool linked = error_count_ > 0 || predictor_.problems().empty();
  errors_->setVisible(linked);
  figures_->setVisible(!linked);
  if (!linked) {
    show_text(tr("No prediction: %1").arg(qs(predictor_.problems().front().message)), theme().muted);
    figures_->setToolTip(qs(to_text(predictor_.problems().front())));
  }
  show_figures(false);
}

void StatusStrip::show_figures(bool on) {
  for (QWidget* widget : std::initializer_list<QWidget*>{bar_, origin_, sources_}) widget->setVisible(on);
  measure_->setVisible(on && plan::has_shipped_rates(predictor_.design()->request()));
}

// The figure is that of the document. If the prediction at the start of the displayed run differs, because of other
// settings or another version of the engine, the text includes it.
QString StatusStrip::predicted_for() {
  const RunPtr run = runs_.shown(RunKind::train);
  prediction_known_ = run && !run->view.info().is_null();
  const views::DesignPtr& design = predictor_.design();
  const auto then = run && kind_ == RunKind::train ? run->view.predicted() : std::nullopt;
  if (predictor_.is_outdated()) return tr("predicted before the last edit");
  const bool exact = design && design->request().engine && !design->plan().memory.is_bound;
  if (!exact || !then || then->total() == design->plan().memory.at_peak.total()) return tr("predicted");
  return tr("predicted for this form; for %1, when it started: %2")
      .arg(qs(run->id.empty() ? run->name : run->id), qs(to_text(then->total())));
}

void StatusStrip::show_nothing() {
  show_text(kind_ == RunKind::size ? tr("The memory of each batch size is predicted before it is measured")
                                   : tr("Sweeps are measured on this machine and simulated on other targets"),
            theme().muted);
  figures_->show();
  figures_->setToolTip({});
  errors_->hide();
  show_figures(false);
}

void StatusStrip::show_text(const QString& text, const QColor& color) {
  QPalette palette = figures_->palette();
  palette.setColor(QPalette::WindowText, color);
  figures_->setText(text);
  figures_->setPalette(palette);
}

void StatusStrip::show_design(const views::Design& design) {
  const Theme& t = theme();
  const plan::DeviceMemory& memory = design.plan().memory;
  const bool stale = predictor_.is_outdated();
  show_text(design_text(design), stale ? t.faint : design.plan().fits() ? t.text : memory.is_bound ? t.warn : t.bad);
  sources_->setToolTip(
      sources_text(memory.at_peak, design.request().target.id, memory.peak_instant, design.plan().sources));
  bar_->show_memory(memory.at_peak, memory.capacity, stale ? 0.45 : 1);
}

void StatusStrip::show_frame() {
  const RunPtr live = runs_.live();
  for (QLabel* label : {job_, steps_, eta_}) label->setVisible(live != nullptr);
  if (!live) return;
  job_->setText(tr("%1  \u00B7  %2")
                    .arg(live->id.empty() ? tr("run") : qs(live->id),
                         runs_.is_stopping() ? tr("Stopping") : state_text(live->view.state())));
  show_steps_and_eta(*steps_, *eta_, live->view);
}

}  // namespace mw::ui

#include "moc_status_strip.cpp"
