// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/welcome.h"

#include <QCheckBox>
#include <QCommandLinkButton>
#include <QMessageBox>

#include "core/engine/kernels/kernel_choice.h"
#include "ui/run_views/run_header.h"
#include "ui/session/action_registry.h"
#include "ui/theme/table_model.h"

namespace mw::ui {
namespace {
constexpr int kWelcomeWidth = 520;
}

Welcome::Welcome(RunController& runs, QWidget* window)
    : QFrame(window), runs_(runs), run_(muted_label({}, this)), again_(new QCheckBox(tr("Show at the next start"))) {
  setObjectName(u"palette"_s);
  setFixedWidth(kWelcomeWidth);
  auto* column = make_layout<QVBoxLayout>(this, {22, 18, 22, 16}, 8);
  auto* title = new QLabel(tr("What do you want to do?"));
  QFont big = demi_bold(font());
  big.setPointSizeF(big.pointSizeF() * 1.4);
  title->setFont(big);
  column->addWidget(title);
  const auto add = [&](WelcomeTask job, const QString& text, const QString& what) {
    auto* button = new QCommandLinkButton(text, what, this);
    button->setAccessibleDescription(what);
    button->setIcon(icon(Glyph::unfold));
    column->addWidget(button);
    connect(button, &QPushButton::clicked, this, [this, job] {
      leave();
      emit chosen(job);
    });
  };
  add(WelcomeTask::design_mesh, tr("Design a Mesh"),
      tr("Plan Gemma on TPUs or GPUs: drag axes, see memory, step time and cost before you rent a chip"));
  add(WelcomeTask::watch_run, tr("Watch a Training Run"),
      tr("The example run fine-tunes the shipped model on this machine with LoRA: live loss, memory and samples"));
  add(WelcomeTask::compare_sweeps, tr("Compare Inference Sweeps"),
      tr("Latency, throughput and cost of published servers side by side, with what makes the numbers differ"));
  run_->setWordWrap(true);
  column->addWidget(run_);
  auto* row = new QHBoxLayout;
  row->addWidget(again_);
  row->addStretch(1);
  QPushButton* close = add_button(*row, tr("Close"), {});
  column->addLayout(row);
  connect(close, &QPushButton::clicked, this, &Welcome::leave);
  window->installEventFilter(this);
  hide();
}

void Welcome::open() {
  again_->setChecked(true);
  show_frame();
  show();
  place();
  raise();
  setFocus();
}

void Welcome::show_frame() {
  if (isHidden()) return;
  const RunPtr live = runs_.live();
  const QString text = !live ? tr("No run is in progress.")
                             : tr("In progress: %1. %2, %3. You can pause or stop it at any time.")
                                   .arg(qs(live->name.empty() ? live->id : live->name), state_text(live->view.state()),
                                        steps_text(live->view));
  if (run_->text() == text) return;
  run_->setText(text);
  place();
}

void Welcome::place() {
  adjustSize();
  move((parentWidget()->width() - width()) / 2, std::max(40, (parentWidget()->height() - height()) / 2));
}

void Welcome::leave() {
  hide();
  emit closed(again_->isChecked());
}

void Welcome::keyPressEvent(QKeyEvent* event) {
  event->key() == Qt::Key_Escape ? leave() : QFrame::keyPressEvent(event);
}

bool Welcome::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize && isVisible()) place();
  return QFrame::eventFilter(watched, event);
}

struct ActionRow {
  QString keys, command, help;
};

void show_shortcuts(QWidget& window, const ActionRegistry& actions) {
  auto* dialog = new QDialog(&window);
  dialog->setObjectName(u"shortcuts"_s);
  dialog->setWindowTitle(QDialog::tr("Keyboard Shortcuts"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  auto* model = new TableModel<ActionRow>({{.title = QDialog::tr("Keys"), .text = &ActionRow::keys},
                                           {.title = QDialog::tr("Command"), .text = &ActionRow::command},
                                           {.title = QDialog::tr("What it does"), .text = &ActionRow::help}},
                                          {}, dialog);
  std::vector<ActionRow> rows;
  for (const QAction* action : actions.all())
    if (!action->shortcut().isEmpty())
      rows.push_back({QKeySequence::listToString(action->shortcuts(), QKeySequence::NativeText), action->text(),
                      action->whatsThis()});
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

#include "moc_welcome.cpp"
