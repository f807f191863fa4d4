// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/found_models.h"

#include "core/views/choices.h"
#include "ui/form/form.h"
#include "ui/form/picker.h"
#include "ui/form/text_fields.h"
#include "ui/session/background_task.h"
#include "ui/session/document.h"
#include "ui/theme/table_model.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace fs = std::filesystem;
namespace {

enum class RowState { searching, predicting, ready, skipped };

struct FoundRow {
  views::FoundChoice choice;
  RowState state = RowState::predicting;
};

QString place_text(importing::ModelPlace place) {
  switch (place) {
    case importing::ModelPlace::hugging_face:
      return PickerPopup::tr("Hugging Face cache");
    case importing::ModelPlace::kaggle:
      return PickerPopup::tr("Kaggle cache");
    case importing::ModelPlace::runs:
      return PickerPopup::tr("Runs");
    case importing::ModelPlace::folder:
      return PickerPopup::tr("Beside the present folder");
  }
  return {};
}

QString here_text(const FoundRow& row) {
  const views::FoundChoice& choice = row.choice;
  if (row.state == RowState::searching) return {};
  if (row.state == RowState::predicting) return PickerPopup::tr("Predicting\u2026");
  if (row.state == RowState::skipped) return PickerPopup::tr("Skipped: %1").arg(qs(choice.reason));
  if (!choice.fits) return PickerPopup::tr("No prediction");
  if (!*choice.fits) return PickerPopup::tr("Does not fit");
  if (!choice.tokens_per_second) return PickerPopup::tr("Fits");
  const plan::Estimate& rate = *choice.tokens_per_second;
  return PickerPopup::tr("Fits, %1 to %2 tokens/s").arg(qs(number_text(rate.low, 2)), qs(number_text(rate.high, 2)));
}

QString row_tooltip(const FoundRow& row) {
  if (row.state == RowState::searching) return {};
  QStringList lines{qpath(row.choice.model.folder)};
  if (row.state != RowState::skipped) lines << place_text(row.choice.model.place);
  if (!row.choice.reason.empty()) lines << qs(row.choice.reason);
  return lines.join(u'\n');
}

std::vector<FoundRow> rows_of(const importing::FoundModels& found, importing::ModelKind kind) {
  std::vector<FoundRow> rows;
  for (const importing::FoundModel& model : found.models)
    if (model.kind == kind) rows.push_back({.choice = {.model = model}});
  for (const Problem& problem : found.skipped) {
    FoundRow& row = rows.emplace_back(FoundRow{.choice = {}, .state = RowState::skipped});
    row.choice.model.folder = problem.file;
    row.choice.model.name = fs::path(problem.file).filename().string();
    row.choice.reason = problem.message;
  }
  return rows;
}

class FoundModelTable : public TableModel<FoundRow> {
 public:
  FoundModelTable(importing::ModelKind kind, const importing::ModelFolders& folders,
                  const experiment::Experiment& experiment, const plan::LoadContext& context)
      : TableModel(columns(), cell) {
    FoundRow searching{.choice = {}, .state = RowState::searching};
    searching.choice.model.name = ss(PickerPopup::tr("Searching this machine\u2026"));
    set_rows({std::move(searching)});
    searching_.start([folders, kind](const ReportProgress&, const std::stop_token& stop) {
      return rows_of(importing::find_models(folders, stop), kind);
    });
    connect(&searching_, &BackgroundWork::ended, this, [this, experiment, context] {
      set_rows(searching_.result().value_or(std::vector<FoundRow>()));
      predict(experiment, context);
    });
    connect(&predicting_, &BackgroundWork::ended, this, [this] {
      if (predicting_.result())
        set_rows(*predicting_.result(),
                 [](const FoundRow& a, const FoundRow& b) { return a.choice.model.folder == b.choice.model.folder; });
    });
  }

 private:
  void predict(const experiment::Experiment& experiment, const plan::LoadContext& context) {
    predicting_.start([rows = rows_, experiment, context](const ReportProgress&, const std::stop_token& stop) mutable {
      const plan::PlanContextPtr loaded = context();
      for (FoundRow& row : rows) {
        if (stop.stop_requested()) break;
        if (row.state != RowState::predicting) continue;
        row.choice = views::predict_here(std::move(row.choice.model), experiment, *loaded);
        row.state = RowState::ready;
      }
      return rows;
    });
  }
  static Columns columns() {
    const auto text = [](auto of) { return [of](const FoundRow& row) -> QString { return qs(of(row.choice.model)); }; };
    return {{.title = PickerPopup::tr("Name"), .text = text([](const auto& m) { return m.name; })},
            {.title = PickerPopup::tr("Family"), .text = text([](const auto& m) { return m.family; })},
            number_column<FoundRow>(
                PickerPopup::tr("Size"),
                [](const FoundRow& row) -> QString {
                  const auto bytes = static_cast<std::int64_t>(row.choice.model.bytes);
                  return bytes > 0 ? qs(to_text(Bytes(bytes))) : QString();
                },
                [](const FoundRow& row) { return static_cast<qulonglong>(row.choice.model.bytes); }),
            {.title = PickerPopup::tr("Type"), .text = text([](const auto& m) { return m.dtype; })},
            {.title = PickerPopup::tr("Predicted here"),
             .tooltip = PickerPopup::tr("Predicted for serving one request at a time with the engine on this machine"),
             .text = here_text}};
  }
  static QVariant cell(const FoundRow& row, int column, int role) {
    const bool usable = row.state == RowState::predicting || row.state == RowState::ready;
    if (role == choice_role) return usable ? qpath(row.choice.model.folder) : u""_s;
    if (role == Qt::ToolTipRole) return row_tooltip(row);
    if (role != Qt::ForegroundRole) return {};
    if (!usable) return theme().muted;
    if (column == 4 && row.choice.fits) return *row.choice.fits ? theme().good : theme().bad;
    return {};
  }
  BackgroundTask<std::vector<FoundRow>> searching_, predicting_;
};

void add_parent(const experiment::Experiment& experiment, const char* key, std::vector<fs::path>& folders) {
  try {
    const fs::path parent = experiment.path(key).parent_path();
    if (!parent.empty() && std::find(folders.begin(), folders.end(), parent) == folders.end())
      folders.push_back(parent);
  } catch (const Error&) {
    // The form shows the invalid value.
  }
}

}  // namespace

QAbstractItemModel* make_found_models(importing::ModelKind kind, const importing::ModelFolders& folders,
                                      const Document& document, const plan::LoadContext& context) {
  return new FoundModelTable(kind, folders, document.experiment(), context);
}

void add_found_model_pickers(Form& form, Document& document, const plan::LoadContext& context,
                             const fs::path& runs_folder) {
  const auto add = [&](const char* key, importing::ModelKind kind) {
    auto* field = qobject_cast<TextField*>(form.row(key)->field());
    field->add_picker([&document, key, kind, context, runs_folder] {
      importing::ModelFolders folders = importing::model_folders(runs_folder);
      add_parent(document.experiment(), key, folders.others);
      return make_found_models(kind, folders, document, context);
    });
  };
  add("model.path", importing::ModelKind::model);
  add("lora.adapter", importing::ModelKind::adapter);
}

}  // namespace mw::ui
