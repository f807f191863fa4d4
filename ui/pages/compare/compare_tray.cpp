// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/compare_tray.h"

#include <QApplication>
#include <QContextMenuEvent>
#include <QDrag>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QMenu>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollArea>
#include <QToolButton>
#include <QUrl>

#include "core/compare/recording.h"
#include "ui/charts/chart_strokes.h"
#include "ui/run_views/run_drag.h"
#include "ui/run_views/sweep_lines.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

constexpr int kSample = 30;
constexpr qsizetype kMost = 26;
enum class Kept { both_ends, beginning, end };

QString shortened(const QString& name, Kept kept) {
  if (name.size() <= kMost) return name;
  switch (kept) {
    case Kept::both_ends:
      return name.left(kMost / 2) + u'\u2026' + name.right(kMost / 2 - 1);
    case Kept::beginning:
      return name.left(kMost - 1) + u'\u2026';
    case Kept::end:
      return u'\u2026' + name.right(kMost - 1);
  }
  return name;
}

QString place_type() {
  return u"application/x-meshwright-tray-place"_s;
}

QString source_text(const compare::ComparedRun& run) {
  if (!run.id.empty()) return qs(run.id);
  return run.sweep ? qs(run.sweep->set.source) : QString();
}

}  // namespace

QStringList short_names(const QStringList& names) {
  QStringList all;
  for (const QString& name : names) all << shortened(name, Kept::both_ends);
  for (const Kept kept : {Kept::beginning, Kept::end}) {
    const QStringList before = all;
    for (qsizetype i = 0; i < all.size(); ++i)
      if (before.count(before[i]) > 1) all[i] = shortened(names[i], kept);
  }
  return all;
}

QStringList short_names(const std::vector<compare::ComparedRun>& runs) {
  QStringList names;
  for (const compare::ComparedRun& run : runs) names << qs(run.name);
  return short_names(names);
}

TrayChip::TrayChip(const compare::ComparedRun& run, const QString& short_name, int at, CompareTray& tray)
    : QFrame(&tray),
      tray_(tray),
      at_(at),
      provenance_(run.provenance),
      stored_(!run.id.empty()),
      replayable_(compare::has_requests(run)) {
  setFocusPolicy(Qt::StrongFocus);
  auto* row = make_layout<QHBoxLayout>(this, {kSample + 14, 3, 4, 3}, 7);
  auto* name = new QLabel(short_name, this);
  name->setFont(demi_bold(name->font()));
  const QString origin = origin_text(run.provenance);
  QLabel* about = muted_label(at == 0 ? tr("baseline, %1").arg(origin) : origin, this);
  about->setFont(small_font());
  QToolButton* close = flat_button(Glyph::close, tr("Remove %1").arg(qs(run.name)), this);
  close->setFocusPolicy(Qt::NoFocus);  // the Delete key does the same
  for (QLabel* l : {name, about}) l->setAttribute(Qt::WA_TransparentForMouseEvents);
  row->addWidget(name);
  row->addWidget(about);
  row->addWidget(close);
  connect(close, &QToolButton::clicked, this, [this] { emit tray_.remove_wanted(at_); });
  setAccessibleName(tr("%1, %2").arg(qs(run.name), about->text()));
  setToolTip(tr("<b>%1</b><br>%2 %3<br>Drag or use Ctrl+Left and Ctrl+Right to reorder; Delete removes the run")
                 .arg(qs(run.name).toHtmlEscaped(), origin, source_text(run).toHtmlEscaped()));
}

void TrayChip::set_emphasised(bool emphasised) {
  if (emphasised == emphasised_) return;
  emphasised_ = emphasised;
  update();
}

// The line of the run as in the charts: colour, style and mark.
void TrayChip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const Theme& t = theme();
  const QColor color = t.series(at_);
  painter.setPen(QPen(hasFocus() ? t.accent : emphasised_ ? color : t.line, hasFocus() || emphasised_ ? 1.6 : 1));
  painter.setBrush(emphasised_ ? mix(t.panel, color, 0.16) : t.panel);
  painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 6, 6);
  const double y = height() / 2.0;
  painter.setPen(QPen(color, 2, pen_style(origin_of(provenance_)), Qt::FlatCap));
  painter.drawLine(QPointF(9, y), QPointF(9 + kSample, y));
  painter.setPen(QPen(t.panel, 1));
  painter.setBrush(color);
  paint_mark(painter, marks_of(at_), QPointF(9 + kSample / 2.0, y));
}

void TrayChip::enterEvent(QEnterEvent*) {
  emit tray_.hovered(at_);
}

void TrayChip::leaveEvent(QEvent*) {
  emit tray_.hovered(-1);
}

void TrayChip::mousePressEvent(QMouseEvent* event) {
  pressed_at_ = event->pos();
  setFocus();
}

void TrayChip::mouseMoveEvent(QMouseEvent* event) {
  const bool far = (event->pos() - pressed_at_).manhattanLength() >= QApplication::startDragDistance();
  if (!(event->buttons() & Qt::LeftButton) || !far) return;
  auto* mime = new QMimeData;
  mime->setData(place_type(), QByteArray::number(at_));
  auto* drag = new QDrag(this);
  drag->setMimeData(mime);
  drag->setPixmap(grab());
  drag->exec(Qt::MoveAction);
}

void TrayChip::mouseDoubleClickEvent(QMouseEvent*) {
  if (stored_) emit tray_.open_wanted(at_);
}

void TrayChip::keyPressEvent(QKeyEvent* event) {
  const bool control = event->modifiers() & Qt::ControlModifier;
  if (event->key() == Qt::Key_Delete) return emit tray_.remove_wanted(at_);
  if (control && event->key() == Qt::Key_Left && at_ > 0) return emit tray_.move_wanted(at_, at_ - 1);
  if (control && event->key() == Qt::Key_Right) return emit tray_.move_wanted(at_, at_ + 1);
  if (event->key() == Qt::Key_Return && stored_) return emit tray_.open_wanted(at_);
  QFrame::keyPressEvent(event);
}

void TrayChip::contextMenuEvent(QContextMenuEvent* event) {
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  QAction* base = menu->addAction(tr("Use as Baseline"), this, [this] { emit tray_.move_wanted(at_, 0); });
  base->setEnabled(at_ > 0);
  menu->addAction(tr("Move Left"), this, [this] { emit tray_.move_wanted(at_, at_ - 1); })->setEnabled(at_ > 0);
  menu->addAction(tr("Move Right"), this, [this] { emit tray_.move_wanted(at_, at_ + 1); });
  menu->addAction(tr("Open"), this, [this] { emit tray_.open_wanted(at_); })->setEnabled(stored_);
  QAction* replay =
      menu->addAction(tr("Replay on Another Target\u2026"), this, [this] { emit tray_.replay_wanted(at_); });
  replay->setEnabled(replayable_);
  menu->addSeparator();
  menu->addAction(tr("Remove"), this, [this] { emit tray_.remove_wanted(at_); });
  menu->popup(event->globalPos());
}

CompareTray::CompareTray(QWidget* parent) : QFrame(parent), hint_(muted_label({}, this)), add_(new QToolButton(this)) {
  setAcceptDrops(true);
  setAccessibleName(tr("Compared runs"));
  auto* whole = make_layout<QHBoxLayout>(this, {4, 3, 6, 3});
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  scroll->viewport()->setAutoFillBackground(false);
  auto* body = new QWidget;
  body->setAutoFillBackground(false);
  row_ = flush_layout<QHBoxLayout>(body, 6);
  scroll->setWidget(body);
  whole->addWidget(scroll, 1);
  whole->addWidget(add_);
  setFixedHeight(46);
  add_->setText(tr("+ Add"));
  add_->setProperty("chip", true);
  add_->setPopupMode(QToolButton::InstantPopup);
  add_->setStyleSheet(u"QToolButton::menu-indicator { image: none; }"_s);
  add_->setAccessibleName(tr("Add to the comparison"));
  add_->setToolTip(tr("Add a run, a shipped result or a result file"));
  row_->addWidget(hint_);
  row_->addStretch(1);
}

void CompareTray::set_menu(QMenu* menu) {
  add_->setMenu(menu);
}

void CompareTray::show_runs(const std::vector<compare::ComparedRun>& runs, int pending) {
  const bool focused = focusWidget() && isAncestorOf(focusWidget());
  for (TrayChip* chip : chips_) chip->deleteLater();
  for (TrayChip* chip : chips_) chip->hide();
  chips_.clear();
  const QStringList names = short_names(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    const int at = static_cast<int>(i);
    auto* chip = new TrayChip(runs[i], names[at], at, *this);
    row_->insertWidget(at, chip);
    chips_.push_back(chip);
  }
  hint_->setText(pending > 0    ? tr("Reading\u2026")
                 : runs.empty() ? tr("Drag runs or result files here, or press Add. The first run is the baseline.")
                                : QString());
  hint_->setVisible(!hint_->text().isEmpty());
  // Applies at once instead of with the next layout: chips scroll and are never squeezed.
  int wide = 0;
  for (TrayChip* chip : chips_) {
    chip->ensurePolished();
    wide += chip->sizeHint().width() + row_->spacing();
  }
  hint_->parentWidget()->setMinimumWidth(wide);
  if (focused && !chips_.empty()) chips_.back()->setFocus();
  update();
}

void CompareTray::set_emphasised(int at) {
  for (TrayChip* chip : chips_) chip->set_emphasised(chip->at() == at);
}

int CompareTray::place_at(double x) const {
  int place = 0;
  for (const TrayChip* chip : chips_) place += x > chip->mapTo(this, chip->rect().center()).x();
  return place;
}

void CompareTray::dragEnterEvent(QDragEnterEvent* event) {
  const QMimeData& mime = *event->mimeData();
  if (!mime.hasFormat(place_type()) && !mime.hasFormat(run_mime_type()) && !mime.hasUrls()) return;
  dragging_ = true;
  update();
  event->acceptProposedAction();
}

void CompareTray::dragLeaveEvent(QDragLeaveEvent*) {
  dragging_ = false;
  update();
}

void CompareTray::dropEvent(QDropEvent* event) {
  dragging_ = false;
  update();
  event->acceptProposedAction();
  const QMimeData& mime = *event->mimeData();
  if (mime.hasFormat(place_type())) {
    const int from = mime.data(place_type()).toInt(), to = place_at(event->position().x());
    emit move_wanted(from, to > from ? to - 1 : to);
    return;
  }
  QStringList all;
  if (mime.hasFormat(run_mime_type())) {
    for (const auto& run : runs_in(mime)) all << qs(run);
    emit runs_dropped(all);
    return;
  }
  for (const QUrl& url : mime.urls())
    if (url.isLocalFile()) all << url.toLocalFile();
  emit files_dropped(all);
}

void CompareTray::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const Theme& t = theme();
  painter.setPen(QPen(dragging_ ? t.accent : t.line, 1, dragging_ || chips_.empty() ? Qt::DashLine : Qt::SolidLine));
  painter.setBrush(dragging_ ? mix(t.window, t.accent, 0.12) : t.window);
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6);
}

}  // namespace mw::ui
