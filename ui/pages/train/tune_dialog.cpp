// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/tune_dialog.h"

#include <QComboBox>
#include <QPlainTextEdit>
#include <QSpinBox>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr int kTuneWidth = 640, kVariedLines = 4;  // pixels; lines

}  // namespace

TuneDialog::TuneDialog(std::filesystem::path runs_folder, plan::LoadContext context, QWidget* parent)
    : TaskDialog(tr("Tune"), u"tune"_s, kTuneWidth, parent),
      runs_folder_(std::move(runs_folder)),
      context_(std::move(context)),
      varied_(new QPlainTextEdit(this)),
      method_(new QComboBox(this)),
      metric_(new QComboBox(this)),
      trials_(new QSpinBox(this)),
      resume_(new QPushButton(this)) {
  description_->setText(
      tr("Trains the experiment of the form with several values of some keys, one run after another. The runs have the "
         "id of the tuning as their tag: filter the Runs page by it and compare them."));
  auto* form = new QFormLayout;
  varied_->setFont(mono_font());
  varied_->setTabChangesFocus(true);
  varied_->setPlaceholderText(u"train.learning_rate=0.001,0.003\nlora.rank=4,16"_s);
  varied_->setFixedHeight(kVariedLines * varied_->fontMetrics().lineSpacing() + 12);
  add_field(*form, tr("Varied keys"), varied_,
            tr("One key a line: key=value,value, or for drawn values key=low..high or key=log:low..high"));
  method_->addItems({tr("Every combination"), tr("Random values"), tr("Successive halving")});
  add_field(*form, tr("Method"), method_,
            tr("Halving compares drawn trials at shares of the steps, and only the better half goes on"));
  trials_->findChild<QLineEdit*>()->setAccessibleName(tr("Trials"));  // it takes the focus
  trials_->setRange(1, 1000);
  trials_->setValue(8);
  add_field(*form, tr("Trials"), trials_);
  for (const char* name : {"eval/loss", "train/loss", "eval/answers_right"})
    metric_->addItem(QString::fromLatin1(name));
  add_field(*form, tr("Metric"), metric_);
  column_->addLayout(form);
  resume_->setToolTip(tr("Finishes the newest tuning that was stopped or cut off, with its own experiment and keys"));
  resume_->setAutoDefault(false);
  resume_->hide();
  column_->addWidget(resume_, 0, Qt::AlignLeft);
  connect(resume_, &QPushButton::clicked, this, [this] {
    if (!unfinished_.empty())
      start({.runs_folder = runs_folder_, .experiment = {}, .options = {}, .resume = unfinished_});
  });
  add_task_rows({tr("Result"), tr("Progress of the tuning"), tr("Close"), tr("Start")});
  follow(task_);
  connect(confirm_, &QPushButton::clicked, this, &TuneDialog::begin);
  connect(&task_, &BackgroundWork::changed, this, &TuneDialog::show_state);
  connect(&task_, &BackgroundWork::ended, this, &TuneDialog::show_outcome);
  connect(varied_, &QPlainTextEdit::textChanged, this, &TuneDialog::show_state);
  connect(method_, &QComboBox::currentIndexChanged, this, &TuneDialog::show_state);
  show_state();
}

void TuneDialog::open_with(experiment::Experiment experiment) {
  if (!task_.is_busy()) {
    experiment_ = std::move(experiment);
    result_->show_text({});
    find_unfinished();
    show_state();
  }
  open();
  varied_->setFocus();
}

void TuneDialog::show_state() {
  const bool busy = task_.is_busy();
  if (busy && !task_.progress().phase.empty()) result_->show_text(qs(task_.progress().phase));
  for (QWidget* field :
       {static_cast<QWidget*>(varied_), static_cast<QWidget*>(method_), static_cast<QWidget*>(metric_)})
    field->setEnabled(!busy);
  trials_->setEnabled(!busy && method_->currentIndex() > 0);
  resume_->setEnabled(!busy);
  cancel_->setText(busy ? tr("Stop") : tr("Close"));
  cancel_->setEnabled(!task_.is_cancelling());
  confirm_->setEnabled(!busy && !varied_->toPlainText().trimmed().isEmpty());
}

void TuneDialog::begin() {
  if (task_.is_busy()) return;
  jobs::TuneRequest request{.runs_folder = runs_folder_, .experiment = experiment_, .options = {}};
  for (const QString& line : varied_->toPlainText().split(u'\n', Qt::SkipEmptyParts))
    if (const QString text = line.trimmed(); !text.isEmpty()) request.options.varied.push_back(ss(text));
  request.options.method = static_cast<jobs::TuneMethod>(method_->currentIndex());
  request.options.trials = trials_->value();
  request.options.metric = ss(metric_->currentText());
  start(std::move(request));
}

void TuneDialog::start(jobs::TuneRequest request) {
  if (task_.is_busy()) return;
  request.context = context_;
  task_.start([request](const ReportProgress& report, const std::stop_token& stop) {
    lower_thread_priority();
    jobs::TuneRequest reporting = request;
    reporting.on_progress = [&](const jobs::TuneProgress& p) {
      const std::string text = "trial " + std::to_string(p.trial) + " of " + std::to_string(p.trials) + ", " + p.run +
                               ": step " + std::to_string(p.step) +
                               (p.eta_seconds ? ", ETA " + to_text(Seconds(*p.eta_seconds)) : std::string());
      const auto done = static_cast<long>(100 * (p.trial - 1)) + (p.until > 0 ? 100 * p.step / p.until : 0);
      report({text, done, static_cast<long>(100 * p.trials)});
    };
    return jobs::tune(reporting, stop);
  });
}

void TuneDialog::find_unfinished() {
  const std::vector<std::string> ids = jobs::unfinished_tunings(runs_folder_);
  unfinished_ = ids.empty() ? std::string() : ids.front();
  resume_->setText(tr("Resume %1").arg(qs(unfinished_)));
  resume_->setVisible(!unfinished_.empty());
}

void TuneDialog::show_outcome() {
  find_unfinished();
  if (task_.problem()) return result_->show_text(qs(to_text(*task_.problem())), ResultText::Tone::bad);
  if (task_.was_cancelled() || !task_.result())
    return result_->show_text(tr("Stopped; the finished trials are kept. Resume goes on with it."));
  result_->show_text(qs(jobs::to_text(*task_.result())));
}

}  // namespace mw::ui

#include "moc_tune_dialog.cpp"
