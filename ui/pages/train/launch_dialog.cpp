// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/launch_dialog.h"

#include <QCheckBox>
#include <QFileDialog>
#include <QStackedWidget>
#include <QVBoxLayout>

#include "core/base/text.h"
#include "core/import/follow.h"
#include "core/launch/launch.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

constexpr int kLaunchWidth = 620, kAttachWidth = 620;
enum Place { here, by_ssh, first_template };  // followed by the templates and a custom command

QLineEdit* line(const QString& name, const QString& placeholder, const QString& help) {
  auto* l = new QLineEdit;
  l->setAccessibleName(name);
  l->setPlaceholderText(placeholder);
  l->setToolTip(help);
  return l;
}

QFormLayout* form_of(QWidget* page) {
  return flush_layout<QFormLayout>(page);
}

QString word(const QString& text) {
  return qs(mw::shell_quoted(ss(text)));
}

}  // namespace

LaunchDialog::LaunchDialog(RunController& runs, std::filesystem::path resources, QWidget* parent)
    : TaskDialog(tr("Launch Elsewhere"), u"launch"_s, kLaunchWidth, parent),
      runs_(runs),
      resources_(std::move(resources)),
      templates_(launch::load_templates(resources_ / "launch")) {
  build();
  connect(confirm_, &QPushButton::clicked, this, &LaunchDialog::begin);
  connect(&runs_, &RunController::state_changed, this, &LaunchDialog::show_state);
  connect(&runs_, &RunController::launch_failed, this, [this](const Problem& problem) {
    if (!waiting_) return;
    waiting_ = false;
    result_->show_text(problem.message.empty() ? tr("Cancelled; nothing was launched.") : qs(to_text(problem)),
                       problem.message.empty() ? ResultText::Tone::plain : ResultText::Tone::bad);
    show_state();
  });
  for (const auto has_started : {&RunController::launched, &RunController::launched_beside})
    connect(&runs_, has_started, this, [this] {
      if (!waiting_) return;
      waiting_ = false;
      accept();
    });
  show_state();
}

void LaunchDialog::build() {
  description_->setText(
      tr("Runs a recipe on another machine and shows the run here. The job keeps running if the connection is lost or "
         "this window is closed."));
  auto* form = new QFormLayout;
  experiment_ = new ExperimentChoice(this);
  form->addRow(tr("Experiment"), experiment_);
  recipe_ = new RecipeChoice(this);
  form->addRow(tr("Recipe"), recipe_);
  where_ = add_field(*form, tr("Where"), new QComboBox(this));
  places_ = new QStackedWidget(this);
  places_->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Maximum);
  form->addRow(QString(), places_);
  folder_ = line(tr("Remote folder"), tr("A new folder in meshwright/"),
                 tr("Relative to the remote home folder; must be empty or new"));
  form->addRow(tr("Remote folder"), folder_);
  force_ = new QCheckBox(tr("Use the folder even if it is not empty, and continue the training in it"), this);
  form->addRow(QString(), force_);
  start_ = line(tr("Command"), tr("./launch.sh: installs requirements.txt into venv/, then starts"),
                tr("A shell command line that is run in that folder"));
  form->addRow(tr("Command"), start_);
  column_->addLayout(form);
  add_templates();
  command_ = muted_label({}, this);
  command_->setWordWrap(true);
  command_->setFont(mono_font(0.92));
  command_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  command_->setAccessibleName(tr("Command line for this launch"));
  column_->addWidget(command_);
  add_task_rows({tr("Error"), tr("Preparing the launch"), tr("Cancel"), tr("Launch")});
  // Tab order as displayed: the fields of a place follow its choice.
  QWidget* before = where_;
  for (QLineEdit* l : places_->findChildren<QLineEdit*>()) {
    setTabOrder(before, l);
    before = l;
  }
  for (QWidget* widget : std::initializer_list<QWidget*>{folder_, force_, start_, result_, cancel_, confirm_}) {
    setTabOrder(before, widget);
    before = widget;
  }
  for (QLineEdit* l : findChildren<QLineEdit*>())
    connect(l, &QLineEdit::textChanged, this, &LaunchDialog::show_command);
  for (QComboBox* c : std::initializer_list<QComboBox*>{experiment_, recipe_, where_})
    connect(c, &QComboBox::currentIndexChanged, this, &LaunchDialog::show_command);
  connect(where_, &QComboBox::currentIndexChanged, places_, &QStackedWidget::setCurrentIndex);
  connect(places_, &QStackedWidget::currentChanged, this, &LaunchDialog::fit_place);
  fit_place();
  connect(experiment_, &QComboBox::currentIndexChanged, this,
          [this] { recipe_->suit(experiment_->chosen().experiment); });
  connect(force_, &QCheckBox::toggled, this, &LaunchDialog::show_command);
}

// As high as the fields of the chosen place instead of the largest page.
void LaunchDialog::fit_place() {
  for (int i = 0; i < places_->count(); ++i)
    places_->widget(i)->setSizePolicy(QSizePolicy::Preferred,
                                      i == places_->currentIndex() ? QSizePolicy::Preferred : QSizePolicy::Ignored);
}

// One page of fields for each place.
void LaunchDialog::add_templates() {
  const auto place = [this](const QString& text) {
    where_->addItem(text);
    auto* page = new QWidget;
    places_->addWidget(page);
    return page;
  };
  auto* none = place(tr("This machine, in another folder"));
  form_of(none)->addRow(muted_label(tr("The job is also detached and keeps running without this window."), none));
  host_ = line(tr("Host"), tr("[USER@]HOST[:PORT], or a Host of ~/.ssh/config"),
               tr("Connects like `ssh HOST` with its keys and does not ask for passwords"));
  form_of(place(tr("A host via SSH")))->addRow(tr("Host"), host_);
  for (const launch::TargetTemplate& t : templates_) {
    QWidget* page = place(tr("%1: %2").arg(qs(t.name), qs(t.about.substr(0, t.about.find(':')))));
    QFormLayout* form = form_of(page);
    fields_.emplace_back();
    for (const auto& field : t.fields) {
      auto* l = line(qs(field.name), field.fallback ? qs(*field.fallback) : tr("Required"), qs(t.command));
      form->addRow(qs(field.name), l);
      fields_.back().push_back({qs(field.name), l});
    }
  }
  own_ = line(tr("Custom command"), tr("docker exec -i box sh -c {command}"),
              tr("{command} is replaced by the command to run, as one quoted word; it is stored with the run and must "
                 "not contain secrets"));
  form_of(place(tr("A custom command")))->addRow(tr("Shell"), own_);
}

QLineEdit& LaunchDialog::field(const QString& name) {
  for (const TemplateField& f : fields_.at(static_cast<size_t>(where_->currentIndex() - first_template)))
    if (f.name == name) return *f.line;
  return *own_;
}

QString LaunchDialog::target_text() const {
  const int at = where_->currentIndex(), of_template = at - first_template;
  if (at == here) return u"local"_s;
  if (at == by_ssh) return u"ssh:"_s + host_->text().trimmed();
  if (of_template >= static_cast<int>(templates_.size())) return own_->text().trimmed();
  QStringList values;
  for (const TemplateField& f : fields_[static_cast<size_t>(of_template)])
    if (const QString value = f.line->text().trimmed(); !value.isEmpty()) values << f.name + u"="_s + value;
  const QString name = qs(templates_[static_cast<size_t>(of_template)].name);
  return values.isEmpty() ? name : name + u":"_s + values.join(u","_s);
}

void LaunchDialog::show_command() {
  QString text = u"meshwright launch %1 --recipe %2 --on %3"_s.arg(word(experiment_->chosen().file), recipe_->name(),
                                                                   word(target_text()));
  if (!folder_->text().isEmpty()) text += u" --dir "_s + word(folder_->text());
  if (force_->isChecked()) text += u" --force"_s;
  if (!start_->text().isEmpty()) text += u" --command "_s + word(start_->text());
  command_->setText(text);
}

void LaunchDialog::open_with(std::vector<NamedExperiment> experiments, int chosen) {
  if (!waiting_) {
    experiment_->offer(std::move(experiments), chosen);
    recipe_->suit(experiment_->chosen().experiment);
    result_->show_text({});
    show_command();
    show_state();
  }
  open();
  recipe_->setFocus();
}

void LaunchDialog::show_state() {
  progress_->setVisible(waiting_);
  for (QWidget* widget :
       std::initializer_list<QWidget*>{experiment_, recipe_, where_, places_, folder_, force_, start_})
    widget->setEnabled(!waiting_);
  confirm_->setEnabled(!waiting_ && !runs_.is_launching_beside());
  confirm_->setToolTip(runs_.is_busy()
                           ? tr("Copy the recipe to the machine and start it; the run in progress stays here")
                           : tr("Copy the recipe to the machine, start it and show the run here"));
  cancel_->setEnabled(!waiting_ || !runs_.is_stopping());
}

void LaunchDialog::begin() {
  result_->show_text({});
  try {
    launch::LaunchRequest request{.experiment = experiment_->chosen().experiment,
                                  .recipe = recipe_->kind(),
                                  .target = launch::parse_target(ss(target_text()), resources_ / "launch"),
                                  .command = ss(start_->text()),
                                  .folder = ss(folder_->text().trimmed()),
                                  .use = force_->isChecked() ? launch::FolderUse::forced : launch::FolderUse::fresh,
                                  .fetch = {},
                                  .runs_folder = {},
                                  .resources = resources_};
    waiting_ = true;
    runs_.launch(std::move(request));
  } catch (const Error& error) {
    result_->show_text(qs(to_text(error.problem())), ResultText::Tone::bad);
  }
  show_state();
}

void LaunchDialog::reject() {
  if (waiting_) return runs_.cancel_launch();
  QDialog::reject();
}

QVariantMap LaunchDialog::remembered() const {
  QVariantMap out{{u"recipe"_s, recipe_->name()},
                  {u"where"_s, where_->currentIndex()},
                  {u"host"_s, host_->text()},
                  {u"own"_s, own_->text()},
                  {u"start"_s, start_->text()}};
  for (size_t t = 0; t < templates_.size(); ++t)
    for (const TemplateField& f : fields_[t]) out.insert(qs(templates_[t].name) + u"."_s + f.name, f.line->text());
  return out;
}

void LaunchDialog::remember(const QVariantMap& values) {
  const auto text = [&](const QString& key) { return values.value(key).toString(); };
  recipe_->choose(text(u"recipe"_s));
  where_->setCurrentIndex(std::clamp(values.value(u"where"_s).toInt(), 0, where_->count() - 1));
  host_->setText(text(u"host"_s));
  own_->setText(text(u"own"_s));
  start_->setText(text(u"start"_s));
  for (size_t t = 0; t < templates_.size(); ++t)
    for (const TemplateField& f : fields_[t]) f.line->setText(text(qs(templates_[t].name) + u"."_s + f.name));
}

AttachDialog::AttachDialog(RunController& runs, QWidget* parent)
    : TaskDialog(tr("Attach to a Running Program"), u"attach"_s, kAttachWidth, parent), runs_(runs) {
  build();
  connect(confirm_, &QPushButton::clicked, this, &AttachDialog::begin);
  connect(source_, &QLineEdit::textChanged, this, &AttachDialog::show_state);
  connect(name_, &QLineEdit::textChanged, this, &AttachDialog::show_state);
  connect(&runs_, &RunController::state_changed, this, &AttachDialog::show_state);
  connect(&runs_, &RunController::launch_failed, this, [this](const Problem& problem) {
    if (!waiting_) return;
    waiting_ = false;
    result_->show_text(problem.message.empty() ? tr("Cancelled; nothing was recorded.") : qs(to_text(problem)),
                       problem.message.empty() ? ResultText::Tone::plain : ResultText::Tone::bad);
    show_state();
  });
  connect(&runs_, &RunController::launched, this, [this] {
    if (!waiting_) return;
    waiting_ = false;
    accept();
  });
  show_state();
}

void AttachDialog::build() {
  description_->setText(
      tr("Records a run that another program is making and shows it here. The program is not changed and keeps running "
         "when the record is stopped."));
  auto* form = new QFormLayout;
  auto* both = new QWidget(this);
  auto* row = flush_layout<QHBoxLayout>(both);
  source_ = new QLineEdit(both);
  source_->setAccessibleName(tr("Source"));
  source_->setPlaceholderText(tr("events.jsonl, a pipe, http://HOST:PORT/PATH or a log folder"));
  source_->setToolTip(
      tr("File or pipe of event lines, URL that sends them, /metrics of a vLLM server, or the log folder of W&B "
         "(offline), TensorBoard or transformers"));
  row->addWidget(source_, 1);
  form->addRow(tr("Source"), both);
  both->setFocusProxy(source_);
  for (const bool folder : {false, true}) {
    auto* choose = new QPushButton(folder ? tr("Folder\u2026") : tr("File\u2026"), both);
    choose->setAccessibleName(folder ? tr("Choose a log folder") : tr("Choose a file of event lines"));
    choose->setAutoDefault(false);  // Enter activates the default button of the dialog
    row->addWidget(choose);
    connect(choose, &QPushButton::clicked, this, [this, folder] {
      open_file_dialog(this,
                       {.title = folder ? tr("Log Folder") : tr("Event File"),
                        .start = source_->text(),
                        .mode = folder ? QFileDialog::Directory : QFileDialog::ExistingFile},
                       [this](const auto& files) { source_->setText(qpath(files.front())); });
    });
  }
  name_ = add_field(*form, tr("Name"), new QLineEdit(this));
  name_->setPlaceholderText(tr("Name of the run; otherwise that of the source"));
  column_->addLayout(form);
  command_ = muted_label({}, this);
  command_->setWordWrap(true);
  command_->setFont(mono_font(0.92));
  command_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  command_->setAccessibleName(tr("Command line for this record"));
  column_->addWidget(command_);
  add_task_rows({tr("Error"), tr("Opening the source"), tr("Cancel"), tr("Attach")});
}

void AttachDialog::show_state() {
  const QString source = source_->text().trimmed();
  QString command =
      u"meshwright watch --follow %1"_s.arg(source.isEmpty() ? u"SOURCE"_s : qs(mw::shell_quoted(ss(source))));
  if (!name_->text().isEmpty()) command += u" --name %1"_s.arg(qs(mw::shell_quoted(ss(name_->text()))));
  command_->setText(command);
  progress_->setVisible(waiting_);
  for (QWidget* widget : std::initializer_list<QWidget*>{source_, name_}) widget->setEnabled(!waiting_);
  confirm_->setEnabled(!runs_.is_busy() && !source.isEmpty());
  confirm_->setToolTip(runs_.is_busy()    ? tr("Another run is active in this window")
                       : source.isEmpty() ? tr("Enter or choose a source first")
                                          : tr("Record what the source has and gets, and show it here"));
}

void AttachDialog::begin() {
  result_->show_text({});
  waiting_ = true;
  runs_.attach({.source = ss(source_->text().trimmed()), .runs_folder = {}, .name = ss(name_->text().trimmed())});
  show_state();
}

void AttachDialog::reject() {
  if (waiting_) return runs_.stop();
  QDialog::reject();
}

}  // namespace mw::ui

#include "moc_launch_dialog.cpp"
