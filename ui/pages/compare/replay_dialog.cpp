// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/replay_dialog.h"

#include <QCheckBox>
#include <QComboBox>
#include <QCompleter>

#include "core/plan/document/plan_request.h"
#include "core/views/sweep_view.h"
#include "ui/run_views/run_lines.h"
#include "ui/session/store_reader.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr int kDialogWidth = 520;

QString point_text(const formats::BenchPoint& p) {
  const QString load = ReplayDialog::tr("%n token(s), %1", nullptr, p.input_len).arg(qs(views::load_text(p)));
  return ReplayDialog::tr("%1: %n request(s)", nullptr, plural_count(p.requests.size())).arg(load);
}

}  // namespace

ReplayDialog::ReplayDialog(std::filesystem::path runs_folder, plan::LoadContext context, QWidget* parent)
    : TaskDialog(tr("Replay on Another Target"), u"replay"_s, kDialogWidth, parent),
      runs_folder_(std::move(runs_folder)),
      load_context_(std::move(context)) {
  auto* form = new QFormLayout;
  points_ = add_field(*form, tr("Requests"), new QComboBox(this));
  add("model.id", tr("Model"), *form);
  add("target.id", tr("Target"), *form);
  add("mesh.*", tr("Mesh"), *form);
  add("serve.kv_dtype", tr("KV cache"), *form);
  add("serve.prefix_cache", tr("Prefix cache"), *form);
  explain_ = new QCheckBox(tr("Explain the difference by cause"), this);
  explain_->setChecked(true);
  explain_->setToolTip(
      tr("Also simulate the servers between the two, one factor after another; see Replay below the comparison"));
  form->addRow(QString(), explain_);
  column_->addLayout(form);
  add_task_rows({tr("Error"), tr("Progress of the replay"), tr("Cancel"), tr("Replay")});
  confirm_->setToolTip(tr("Simulate the requests at their recorded times and add the result to the comparison"));
  follow(task_);
  connect(confirm_, &QPushButton::clicked, this, &ReplayDialog::start);
  connect(&task_, &BackgroundWork::changed, this, &ReplayDialog::show_progress);
  connect(&task_, &BackgroundWork::ended, this, &ReplayDialog::show_outcome);
  show_progress();
}

void ReplayDialog::add(const std::string& key, const QString& caption, QFormLayout& form) {
  FormField* f = make_field(*experiment::find_parameter(key), this);
  f->set_compact();
  form.addRow(caption, f);
  connect(f, &FormField::edited, this, [this, f](const Json& value, Gesture) {
    if (f->key() == "target.id") edits_.erase("mesh");  // the mesh depends on the target
    edits_[f->key()] = value;
    show_server();
  });
  connect(f, &FormField::cleared, this, [this, f] {
    edits_.erase(f->key());
    show_server();
  });
  fields_.push_back(f);
}

FormField* ReplayDialog::field(const std::string& key) {
  for (FormField* f : fields_)
    if (f->key() == key) return f;
  return nullptr;
}

void ReplayDialog::open_with(compare::Recording recording, std::optional<size_t> point) {
  if (task_.is_busy()) {  // one replay at a time
    open();
    return;
  }
  recording_ = std::move(recording);
  edits_.clear();
  try {
    context_ = load_context_();
    QStringList ids;
    for (const std::string& id : context_->catalogue.target_ids()) ids << qs(id);
    if (auto* line = qobject_cast<QLineEdit*>(field("target.id")->editor()))
      line->setCompleter(new QCompleter(ids, line));
  } catch (const Error&) {  // reported when the replay starts
    context_.reset();
  }
  QString about = tr("<b>%1</b>, %2. Its requests are repeated at their recorded times in a simulation of the server "
                     "below; the result is a prediction.")
                      .arg(qs(recording_.set.name).toHtmlEscaped(), origin_text(recording_.set.provenance));
  if (recording_.summaries > 0)
    about =
        tr("%1 Points without recorded requests are omitted: %2.").arg(about, QString::number(recording_.summaries));
  description_->setText(about);
  points_->clear();
  points_->addItem(tr("All points (%1): %n request(s)", nullptr, plural_count(recording_.requests()))
                       .arg(recording_.set.points.size()));
  for (const auto& p : recording_.set.points) points_->addItem(point_text(p));
  points_->setCurrentIndex(point ? static_cast<int>(*point) + 1 : 0);
  result_->show_text({});
  show_server();
  show_progress();
  open();
  field("target.id")->editor()->setFocus();
}

// The default of target and stack.
QString ReplayDialog::default_mesh(experiment::Experiment server) const {
  if (!context_) return {};
  server.set_value("kind", "serve");
  server.set_value("mesh", Json::object());
  try {
    return mesh_text(plan::planned_mesh(server, *context_));
  } catch (const Error&) {  // of an incomplete target
    return {};
  }
}

// The settings of the recording with the edits.
experiment::Experiment ReplayDialog::server() const {
  experiment::Experiment experiment = recording_.server;
  if (const auto target = edits_.find("target.id"); target != edits_.end()) try {
      if (!context_ || !target->second.is_string()) throw Error("TARGET", "not known");
      plan::retarget(experiment, target->second.get<std::string>(), *context_);
    } catch (const Error&) {  // incomplete or unknown: reported by the replay
      experiment.set_value("target.id", target->second);
    }
  for (const auto& [key, value] : edits_)
    if (key != "target.id") experiment.set_value(key, value);
  return experiment;
}

void ReplayDialog::show_server() {
  const experiment::Experiment experiment = server();
  for (FormField* f : fields_) f->show_value(raw_value(experiment, f->key()));
  field("mesh")->set_default_text(default_mesh(experiment));
}

void ReplayDialog::show_progress() {
  const bool busy = task_.is_busy();
  if (busy) result_->show_text(tr("Replaying: %1 % of the requests").arg(task_.percent()));
  points_->setEnabled(!busy);
  for (FormField* f : fields_) f->setEnabled(!busy);
  explain_->setEnabled(!busy);
  confirm_->setEnabled(!busy);
  cancel_->setEnabled(!busy || !task_.is_cancelling());
}

void ReplayDialog::show_outcome() {
  if (task_.was_cancelled()) return result_->show_text(tr("Cancelled; nothing was recorded."));
  if (task_.problem()) return result_->show_text(qs(to_text(*task_.problem())), ResultText::Tone::bad);
  accept();
  emit replayed(qs(*task_.result()));
}

void ReplayDialog::start() {
  if (task_.is_busy()) return;
  result_->show_text({});
  compare::Recording chosen = recording_;
  if (const int at = points_->currentIndex() - 1; at >= 0) {
    chosen.summaries = 0;
    chosen.set.points = {recording_.set.points[static_cast<size_t>(at)]};
  }
  task_.start(with_store(
      runs_folder_,
      [chosen = std::move(chosen), server = server(), load = load_context_, explains = explain_->isChecked()](
          store::Store& store, const ReportProgress& report, const std::stop_token& stop) {
        const auto progress = [&](long done, long of) { report({"replaying", done, of}); };
        if (!explains)
          return compare::record_replay(store, server, compare::replay(chosen, server, *load(), progress, stop));
        auto explained = compare::explain_replay(chosen, chosen.server, server, *load(), progress, stop);
        const Json json = to_json(explained);
        return compare::record_replay(store, server, std::move(explained.predicted), json);
      }));
}

}  // namespace mw::ui

#include "moc_replay_dialog.cpp"
