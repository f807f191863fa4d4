// SPDX-License-Identifier: GPL-3.0-or-later
// Pickers of the form: a popup with a search line and a table of what can be chosen, with the figures that decide. GUI
// thread.
#pragma once
#include <QFrame>
#include <filesystem>

#include "core/import/found_models.h"
#include "core/plan/calibration/plan_context.h"
#include "ui/session/document.h"
#include "ui/theme/table_model.h"

class QLineEdit;
class QSortFilterProxyModel;
class QTableView;

namespace mw::ui {

class Form;

// Role of the value in the first column that is chosen with the row, if it is not the text. A row whose value is empty
// cannot be chosen.
inline constexpr int choice_role = first_own_role;

// The first column of the model names what is chosen. Deletes itself when it closes.
class PickerPopup : public QFrame {
  Q_OBJECT
 public:
  PickerPopup(QAbstractItemModel* model, const QString& name, QWidget* parent);  // takes the model
  void open_below(const QWidget& field, const QString& current);
  QLineEdit& search() { return *search_; }
  QTableView& table() { return *table_; }

 signals:
  void chosen(const QString& id);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void choose();
  void select(int row);
  void fit_columns();
  QSortFilterProxyModel* matches_;
  QLineEdit* search_;
  QTableView* table_;
};

// Adds pickers to the fields of targets and of the catalogue model.
void add_pickers(Form& form, Document& document, const plan::LoadContext& context);

class Document;
class Form;

// A table of the models or adapters found on this machine. The rows come from a worker thread, which ends with the
// model: first what is found, then the predictions.
QAbstractItemModel* make_found_models(importing::ModelKind kind, const importing::ModelFolders& folders,
                                      const Document& document, const plan::LoadContext& context);

// Adds pickers to the fields of folders: model.path and lora.adapter.
void add_found_model_pickers(Form& form, Document& document, const plan::LoadContext& context,
                             const std::filesystem::path& runs_folder);

}  // namespace mw::ui
