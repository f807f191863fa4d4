// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/welcome.h"

#include <QCheckBox>
#include <QCommandLinkButton>
#include <QEvent>
#include <QKeyEvent>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/run_views/run_header.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

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
  const auto add = [&](Job job, const QString& text, const QString& what) {
    auto* button = new QCommandLinkButton(text, what, this);
    button->setAccessibleDescription(what);
    button->setIcon(icon(Glyph::unfold));
    column->addWidget(button);
    connect(button, &QPushButton::clicked, this, [this, job] {
      leave();
      emit chosen(job);
    });
  };
  add(Job::design_mesh, tr("Design a Mesh"),
      tr("Plan Gemma on TPUs or GPUs: drag axes, see memory, step time and cost before you rent a chip"));
  add(Job::watch_run, tr("Watch a Training Run"),
      tr("The example run fine-tunes the shipped model on this machine with LoRA: live loss, memory and samples"));
  add(Job::compare_sweeps, tr("Compare Inference Sweeps"),
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

}  // namespace mw::ui

#include "moc_welcome.cpp"
