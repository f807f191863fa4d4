// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/data/token_context.h"

#include <QMenu>

#include "core/experiment/bound_experiment.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/train/checkpoint.h"
#include "core/train/settings.h"
#include "ui/theme/text.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

constexpr size_t kMostRunsListed = 15;
constexpr size_t kMostRowsToPack = 1'000'000;  // beyond that, neighbours are not looked up

std::vector<store::RunRow> runs_with_checkpoint(const store::Store& store) {
  std::vector<store::RunRow> found;
  for (store::RunRow& row : store.list()) {
    if (found.size() == kMostRunsListed) break;
    if (train::latest_checkpoint(store.run_folder(row.id))) found.push_back(std::move(row));
  }
  return found;
}

}  // namespace

TokenContext::TokenContext(const DataReader& reader, StoreReader& store, QObject* parent)
    : QObject(parent), reader_(reader), store_(store) {
  connect(&task_, &BackgroundWork::ended, this, [this] {
    if (task_.result()) context_ = std::move(*task_.result());
    emit changed();
  });
}

QToolButton* TokenContext::make_button(QWidget* parent) {
  button_ = new QToolButton(parent);
  button_->setProperty("chip", true);
  button_->setPopupMode(QToolButton::InstantPopup);
  button_->setText(tr("Losses"));
  button_->setAccessibleName(tr("Model whose losses are shown"));
  button_->setToolTip(tr("Colour each token by its loss under a model"));
  auto* menu = new QMenu(button_);
  button_->setMenu(menu);
  connect(menu, &QMenu::aboutToShow, this, [this, menu] { fill(*menu); });
  return button_;
}

void TokenContext::fill(QMenu& menu) {
  menu.clear();
  const auto entry = [this, &menu](const QString& text, Losses losses, const store::RunId& run) {
    QAction* action = menu.addAction(text, this, [this, losses, run] { choose(losses, run); });
    action->setCheckable(true);
    action->setChecked(losses == losses_ && run == run_);
  };
  entry(tr("No Losses"), Losses::none, {});
  entry(tr("Base Model"), Losses::base, {});
  menu.addSection(tr("Checkpoint of a Run"));
  QAction* wait = menu.addAction(tr("Reading\u2026"));  // the runs follow while the menu is open
  wait->setEnabled(false);
  store_.read(
      *wait, runs_with_checkpoint,
      [this, entry, wait](const std::vector<store::RunRow>& runs) {
        for (const store::RunRow& run : runs)
          entry(tr("%1, %2").arg(qs(run.name.empty() ? run.id : run.name), qs(run.id)), Losses::run, run.id);
        runs.empty() ? wait->setText(tr("None")) : delete wait;
      },
      [wait](const Problem& problem) { wait->setText(qs(problem.message)); });
}

void TokenContext::choose(Losses losses, const store::RunId& run) {
  if (losses == losses_ && run == run_) return;
  losses_ = losses;
  run_ = run;
  if (button_)
    button_->setText(losses == Losses::none   ? tr("Losses")
                     : losses == Losses::base ? tr("Losses: base")
                                              : tr("Losses: %1").arg(qs(run)));
  start();
}

void TokenContext::read(const experiment::Experiment& experiment, const views::DataDetail& detail) {
  experiment_ = experiment;
  detail_ = detail;
  start();
}

void TokenContext::clear() {
  experiment_.reset();
  task_.abandon();
  context_ = {};
}

void TokenContext::start() {
  context_ = {};
  if (!experiment_) return;
  const bool packs = reader_.index() && reader_.request().batches.packing == data::Packing::pack &&
                     reader_.rows().size() <= kMostRowsToPack;
  std::vector<int> ids;
  for (const views::DataToken& token : detail_.tokens) ids.push_back(token.id);
  if (detail_.row.used > 0) ids.resize(std::min(ids.size(), static_cast<size_t>(detail_.row.used)));
  const auto work = [request = reader_.request(), rows = packs ? reader_.rows() : std::vector<data::DataRow>(),
                     row = detail_.row, ids = std::move(ids), experiment = *experiment_,
                     tokenizer = reader_.tokenizer(),
                     losses = losses_](const std::filesystem::path& tuned, const std::stop_token& stop) {
    const options::Model section = experiment.data_config().model;
    const model::Config model = formats::model_config(section);
    RowContext out{.window = model.sliding_window, .packed = jobs::packed_with(row.row, rows, request.batches)};
    out.difference = jobs::template_difference(request, *tokenizer, row, train::served_template(section, model.family));
    if (losses == Losses::none) return out;
    out.losses = jobs::token_losses(experiment, tuned, ids, stop);
    return out;
  };
  if (losses_ == Losses::run)
    task_.start(with_store(store_.folder(), [work, run = run_](const store::Store& store, const ReportProgress&,
                                                               const std::stop_token& stop) {
      return work(jobs::tuned_model_of(store, run), stop);
    }));
  else
    task_.start([work](const ReportProgress&, const std::stop_token& stop) { return work({}, stop); });
  emit changed();
}

QString TokenContext::note() const {
  if (!experiment_) return {};
  if (task_.is_busy()) return losses_ == Losses::none ? QString() : tr("Computing the loss of each token\u2026");
  if (task_.problem()) return qs(to_text(*task_.problem()));
  QStringList notes;
  for (const std::string& note : jobs::row_notes(context_.packed, context_.difference)) notes << qs(note);
  return notes.join(u"; "_s);
}

}  // namespace mw::ui

#include "moc_token_context.cpp"
