// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/run_views/run_header.h"

#include <QProgressBar>
#include <cmath>

#include "core/store/run_settings.h"

namespace mw::ui {
namespace {

constexpr const char* kLoading = "loading weights";
constexpr int kMostRunName = 420;  // pixels

// Size runs report their progress as a share of all work, except while they load the model.
bool by_work(const views::RunView& view) {
  const auto& a = view.activity();
  return view.kind() == "size" && a && a->total > 0 && a->phase != kLoading;
}

bool has_points(const views::RunView& view) {
  return view.kind() == "size" || view.kind() == "sweep";
}

QString activity_text(const views::RunView& view) {
  const auto& a = view.activity();
  if (!a || a->phase == "training" || view.state() != RunState::running) return {};
  if (by_work(view)) return RunHeader::tr("%1, %2 % done").arg(qs(a->phase)).arg(100 * a->done / a->total);
  return a->total > 0 ? RunHeader::tr("%1: %2 of %3").arg(qs(a->phase)).arg(a->done).arg(a->total) : qs(a->phase);
}

QString steps_text_at(const views::RunView& view, long step) {
  if (has_points(view)) return RunHeader::tr("point %1 of %2").arg(step).arg(view.steps_total());
  if (view.steps_total() <= 0) return RunHeader::tr("step %1").arg(step);
  return RunHeader::tr("step %1 of %2").arg(step).arg(view.steps_total());
}

void set_least_text(QLabel& label, const QString& widest) {
  const QMargins around = label.contentsMargins();
  label.setMinimumWidth(label.fontMetrics().horizontalAdvance(widest) + around.left() + around.right() + 2);
}

}  // namespace

QString state_text(RunState state) {
  static constexpr const char* kTexts[] = {
      QT_TRANSLATE_NOOP("mw::ui::RunHeader", "Starting"), QT_TRANSLATE_NOOP("mw::ui::RunHeader", "Running"),
      QT_TRANSLATE_NOOP("mw::ui::RunHeader", "Paused"),   QT_TRANSLATE_NOOP("mw::ui::RunHeader", "Done"),
      QT_TRANSLATE_NOOP("mw::ui::RunHeader", "Failed"),   QT_TRANSLATE_NOOP("mw::ui::RunHeader", "Stopped")};
  return RunHeader::tr(kTexts[static_cast<size_t>(state)]);
}

QString steps_text(const views::RunView& view) {
  return steps_text_at(view, view.step());
}

QString eta_text(const views::RunView& view) {
  if (view.ended()) return RunHeader::tr("took %1").arg(qs(to_text(Seconds(view.finished()->seconds))));
  const auto eta = view.eta_seconds();
  if (!eta) return {};
  if (*eta < 1) return RunHeader::tr("ETA under 1 s");
  if (*eta < 59.5) return RunHeader::tr("ETA %1 s").arg(std::lround(*eta));
  return RunHeader::tr("ETA %1").arg(qs(to_text(Seconds(*eta))));
}

void show_steps_and_eta(QLabel& steps, QLabel& eta, const views::RunView& view) {
  steps.setText(steps_text(view));
  eta.setText(eta_text(view));
  set_least_text(steps, steps_text_at(view, std::max(view.step(), view.steps_total())));
  set_least_text(eta, u"ETA 00:00:00"_s);
}

void show_progress(QProgressBar& bar, const views::RunView& view) {
  const QByteArray name(std::string(to_string(view.state())).c_str());
  set_style_property(bar, "state", name);
  // Loading before the first step and points of different cost report their own progress.
  const auto& activity = view.activity();
  const bool preparing = !view.ended() && activity && activity->total > 0 && (view.step() == 0 || by_work(view));
  const double share =
      preparing ? static_cast<double>(activity->done) / static_cast<double>(activity->total) : view.fraction();
  bar.setRange(0, 1000);
  const int value = static_cast<int>(share * 1000);
  if (value == bar.value()) return;
  bar.setUpdatesEnabled(false);  // QProgressBar::setValue() would paint all that is due in the window at once
  bar.setValue(value);
  bar.setUpdatesEnabled(true);
}

RunHeader::RunHeader(RunController& runs, QWidget* parent)
    : QFrame(parent),
      runs_(runs),
      line_(new QFrame(this)),
      back_(new QPushButton(tr("Back to the Live Run"), this)),
      state_(new QLabel(line_)),
      name_(new ElidedLabel(Qt::ElideMiddle, line_, kMostRunName)),  // its end is the id
      activity_(new ElidedLabel(Qt::ElideRight, line_)),
      steps_(new QLabel(line_)),
      speed_(new QLabel(line_)),
      eta_(new QLabel(line_)),
      bar_(new QProgressBar(line_)) {
  auto* both = flush_layout<QHBoxLayout>(this);
  both->addWidget(line_, 1);
  both->addWidget(back_);
  back_->hide();
  connect(back_, &QPushButton::clicked, &runs_, &RunController::show_live);
  auto* row = make_layout<QHBoxLayout>(line_, {2, 2, 4, 2}, 8);
  state_->setFont(demi_bold(font()));
  name_->setFont(demi_bold(font()));
  bar_->setTextVisible(false);
  bar_->setMinimumWidth(40);
  bar_->setAccessibleName(tr("Progress of the run"));
  row->addWidget(state_);
  row->addWidget(name_);
  row->addWidget(activity_, 3);
  row->addWidget(steps_);
  row->addWidget(bar_, 2);
  row->addWidget(speed_);
  row->addWidget(eta_);
  set_least_text(*speed_, u"00.0 ms/step"_s);
  activity_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  QSizePolicy kept = speed_->sizePolicy();
  kept.setRetainSizeWhenHidden(true);
  speed_->setSizePolicy(kept);
  for (QLabel* l : {static_cast<QLabel*>(activity_), speed_}) l->setProperty("muted", true);
}

void RunHeader::show_run(const RunPtr& run, RunKind kind) {
  const RunPtr live = runs_.live();
  back_->setVisible(live && live->kind() == kind && live != run);
  line_->setVisible(run != nullptr);
  if (run) fill(*run, runs_.is_stopping() && run->is_live);
}

// Shows the run's own name until the store has told it apart from equal ones.
void RunHeader::ask_for_name(const RunData& run) {
  named_ = run.id;
  distinct_name_ = qs(run.name);
  show_name();
  if (run.id.empty()) return;
  runs_.store().read(
      *this, [id = run.id](const store::Store& store) { return store::distinct_name(store, id); },
      [this, id = run.id](const std::string& name) {
        if (named_ != id) return;
        distinct_name_ = qs(name);
        show_name();
      });  // the Runs page reports errors
}

// The id ends the name where nothing else tells equal names apart.
void RunHeader::show_name() {
  const QString id = qs(named_);
  const bool named = id.isEmpty() || distinct_name_ == id || distinct_name_.endsWith(tr("(%1)").arg(id));
  name_->setText(named ? distinct_name_ : tr("%1  \u00B7  %2").arg(distinct_name_, id));
}

void RunHeader::fill(const RunData& run, bool stopping) {
  const views::RunView& view = run.view;
  const bool interrupted = view.error() == store::kInterrupted;
  const QColor color = theme().state(interrupted ? RunState::cancelled : view.state());
  const QString dot = u"<span style='color:%1'>\u25CF</span> "_s.arg(color.name());
  const bool is_detached = !run.is_live && !view.ended() && view.info().is_object() && view.info().contains("launched");
  const QString state = stopping      ? tr("Stopping")
                        : interrupted ? tr("Interrupted")
                        : is_detached ? tr("Detached")
                                      : state_text(view.state());
  state_->setText(dot + state);
  set_least_text(*state_, u"\u25CF "_s + (view.ended() ? state : tr("Interrupted")));  // a live row does not move
  if (named_ != run.id || run.id.empty()) ask_for_name(run);
  show_steps_and_eta(*steps_, *eta_, view);
  show_progress(*bar_, view);
  const auto pace = view.seconds_per_step();
  speed_->setText(pace && *pace > 0 ? tr("%1/step").arg(qs(to_text(Seconds(*pace)))) : QString());
  eta_->setToolTip(view.ended() ? QString() : tr("Estimated from the speed so far, without pauses"));
  const QString ending = runs_.is_remote()     ? tr("stopping the remote job")
                         : runs_.is_attached() ? tr("ending the record; the program continues")
                         : has_points(view)    ? tr("finished points are kept")
                                               : tr("writing a checkpoint");
  activity_->setText(!view.error().empty() ? qs(view.error())
                     : stopping            ? ending
                     : view.ended()        ? qs(views::outcome_text(*view.finished()))
                                           : activity_text(view));
  // The error takes the space of progress and speed; a run that has ended leaves that of progress to its name.
  bar_->setVisible(view.error().empty() && !view.ended());
  speed_->setVisible(view.error().empty());
}

}  // namespace mw::ui

#include "moc_run_header.cpp"
