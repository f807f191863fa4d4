// SPDX-License-Identifier: GPL-3.0-or-later
// Pickers of the fields for model and adapter folders: a table of what is found on this machine. GUI thread.
#pragma once
#include <filesystem>

#include "core/import/found_models.h"
#include "core/plan/calibration/plan_context.h"

class QAbstractItemModel;

namespace mw::ui {

class Document;
class Form;

// The rows come from a worker thread, which ends with the model: first what is found, then the predictions.
QAbstractItemModel* make_found_models(importing::ModelKind kind, const importing::ModelFolders& folders,
                                      const Document& document, const plan::LoadContext& context);

// Adds pickers to model.path and lora.adapter.
void add_found_model_pickers(Form& form, Document& document, const plan::LoadContext& context,
                             const std::filesystem::path& runs_folder);

}  // namespace mw::ui
