// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/help.h"

#include <QDialog>
#include <QHeaderView>
#include <QIcon>
#include <QMessageBox>
#include <QTableView>
#include <QVBoxLayout>

#include "core/engine/kernels/kernel_choice.h"
#include "ui/session/action_registry.h"
#include "ui/theme/table_model.h"
#include "ui/theme/tables.h"
#include "ui/theme/text.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
using ActionRow = const QAction*;

void show_shortcuts(QWidget& window, const ActionRegistry& actions) {
  auto* dialog = new QDialog(&window);
  dialog->setObjectName(u"shortcuts"_s);
  dialog->setWindowTitle(QDialog::tr("Keyboard Shortcuts"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  auto* model = new TableModel<ActionRow>(
      {{.title = QDialog::tr("Keys"),
        .text =
            [](const ActionRow& a) { return QKeySequence::listToString(a->shortcuts(), QKeySequence::NativeText); }},
       {.title = QDialog::tr("Command"), .text = [](const ActionRow& a) { return a->text(); }},
       {.title = QDialog::tr("What it does"), .text = [](const ActionRow& a) { return a->whatsThis(); }}},
      {}, dialog);
  std::vector<ActionRow> rows;
  for (const QAction* action : actions.all())
    if (!action->shortcut().isEmpty()) rows.push_back(action);
  model->set_rows(std::move(rows));
  QTableView* table = make_table(*model, QDialog::tr("Keyboard shortcuts"), dialog);
  copy_on_ctrl_c(*table);
  table->resizeColumnsToContents();
  table->horizontalHeader()->setStretchLastSection(true);
  flush_layout<QVBoxLayout>(dialog)->addWidget(table);
  dialog->resize(760, 520);
  dialog->open();
}

void show_about(QWidget& window) {
  QStringList kernels;
  for (const std::string& line : engine::describe_choice()) kernels << qs(line);
  auto* box =
      new QMessageBox(QMessageBox::NoIcon, QDialog::tr("About Meshwright"),
                      QDialog::tr("Meshwright %1").arg(QStringLiteral(MW_VERSION)), QMessageBox::Close, &window);
  box->setObjectName(u"about"_s);
  box->setIconPixmap(QIcon(u":/theme/meshwright.svg"_s).pixmap(64, 64));
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setInformativeText(
      QDialog::tr("Fine-tunes and serves Gemma on this machine over virtual meshes, and plans for TPUs and GPUs.\n\n"
                  "The window is free software under the GNU General Public License, version 3 or later; core is under "
                  "the Apache License 2.0. Made with Qt %1.\n\n"
                  "Matrix products on this processor:\n%2")
          .arg(QString::fromLatin1(qVersion()), kernels.join(u'\n')));
  box->open();
}

}  // namespace mw::ui
