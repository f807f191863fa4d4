// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/export_dialog.h"

#include <QCheckBox>
#include <QListWidget>

#include "core/jobs/recipe_export.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {
constexpr int kExportWidth = 660;
}

ExportDialog::ExportDialog(std::filesystem::path templates, plan::LoadContext context, QWidget* parent)
    : TaskDialog(tr("Export as a Recipe"), u"export"_s, kExportWidth, parent),
      templates_(std::move(templates)),
      context_(std::move(context)) {
  build();
  resize(kExportWidth, 560);
  connect(experiment_, &QComboBox::currentIndexChanged, this, &ExportDialog::choose);
  connect(recipe_, &QComboBox::currentIndexChanged, this, &ExportDialog::preview);
  connect(confirm_, &QPushButton::clicked, this, &ExportDialog::write);
  connect(folder_, &QLineEdit::textChanged, this, &ExportDialog::show_state);
  connect(&task_, &BackgroundWork::changed, this, &ExportDialog::show_state);
  connect(&task_, &BackgroundWork::ended, this, &ExportDialog::show_outcome);
  show_state();
  show_preview();
}

void ExportDialog::build() {
  description_->setText(
      tr("Exports a folder that runs the experiment elsewhere without changes: scripts, settings, batches (if data and "
         "tokenizer are available) and a README."));
  auto* form = new QFormLayout;
  experiment_ = new ExperimentChoice(this);
  form->addRow(tr("Experiment"), experiment_);
  recipe_ = new RecipeChoice(this);
  form->addRow(tr("Recipe"), recipe_);
  folder_ = add_folder(*form, tr("Folder"), tr("A new or empty folder, or an earlier export"), *this).line;
  overwrite_ = new QCheckBox(tr("Overwrite files that were changed since an earlier export"), this);
  form->addRow(QString(), overwrite_);
  column_->addLayout(form);
  const auto list = [&](const QString& title, int stretch) {
    auto* caption = new QLabel(title, this);
    auto* l = new QListWidget(this);
    l->setAccessibleName(title);
    l->setWordWrap(true);
    l->setSelectionMode(QAbstractItemView::NoSelection);
    column_->addWidget(caption);
    column_->addWidget(l, stretch);
    return l;
  };
  files_ = list(tr("Files"), 3);
  remarks_ = list(tr("Findings of the checker"), 3);
  add_task_rows({tr("Result"), tr("Exporting the recipe"), tr("Close"), tr("Export"), 0});
}

void ExportDialog::open_with(std::vector<NamedExperiment> experiments, int chosen) {
  experiment_->offer(std::move(experiments), chosen);
  choose();
  open();
  folder_->setFocus();
}

void ExportDialog::choose() {
  {
    const QSignalBlocker quiet(recipe_);
    recipe_->suit(experiment_->chosen().experiment);
  }
  preview();
}

void ExportDialog::preview() {
  result_->show_text({});
  preview_.reset();
  show_preview();
  task_.start([kind = recipe_->kind(), experiment = experiment_->chosen().experiment, templates = templates_,
               load = context_](const ReportProgress&, const std::stop_token& stop) {
    auto made = std::make_shared<Preview>(Preview{jobs::recipe_input(kind, experiment, *load(), templates, stop), {}});
    for (recipes::File& file : recipes::recipe_files(made->subject, templates))
      made->files.push_back(std::move(file.path));
    if (!model::serves(kind) && made->subject.rows) made->files.emplace_back("data/rows.safetensors");
    if (!model::serves(kind) && !made->subject.adapter.empty()) made->files.emplace_back("adapter/");
    return Exported{std::move(made), {}};
  });
}

void ExportDialog::show_outcome() {
  if (const auto& exported = task_.result()) {
    preview_ = exported->preview;
    if (!exported->folder.empty())
      result_->show_text(tr("Exported %n file(s) to %1. See README.md there for how to run them.", nullptr,
                            plural_count(exported->files))
                             .arg(qpath(exported->folder)));
  }
  if (task_.problem()) result_->show_text(qs(to_text(*task_.problem())), ResultText::Tone::bad);
  show_state();
  show_preview();
}

void ExportDialog::show_state() {
  progress_->setVisible(task_.is_busy());
  confirm_->setEnabled(!task_.is_busy() && preview_ && !folder_->text().trimmed().isEmpty());
}

void ExportDialog::show_preview() {
  files_->clear();
  remarks_->clear();
  if (!preview_) return;
  for (const std::string& file : preview_->files) files_->addItem(qs(file));
  const auto& remarks = preview_->subject.remarks;
  for (const std::string& remark : remarks) remarks_->addItem(qs(remark));
  if (remarks.empty()) remarks_->addItem(tr("No findings."));
}

void ExportDialog::write() {
  result_->show_text({});
  if (!preview_) return;
  const auto overwrite = overwrite_->isChecked() ? recipes::Overwrite::changed_files : recipes::Overwrite::refuse;
  task_.start([made = preview_, templates = templates_, folder = fspath(folder_->text().trimmed()), overwrite](
                  const ReportProgress&, const std::stop_token&) {
    return Exported{made, folder, recipes::write_recipe(made->subject, templates, folder, overwrite).size()};
  });
}

void ExportDialog::set_recipe(const QString& name) {
  const QSignalBlocker quiet(recipe_);
  recipe_->choose(name);
}

}  // namespace mw::ui

#include "moc_export_dialog.cpp"
