// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/compare_tray.h"

#include <QMenu>
#include <QTabBar>

#include "core/compare/audited_training.h"
#include "core/compare/recording.h"
#include "ui/charts/chart_strokes.h"
#include "ui/run_views/run_drag.h"
#include "ui/run_views/run_lines.h"
#include "ui/session/store_reader.h"

namespace mw::ui {

void ComparedReader::read_run(const store::RunId& run) {
  start(with_store(folders_.runs,
                   [load = context_, run](store::Store& store, const ReportProgress&, const std::stop_token&) {
                     std::vector<compare::ComparedRun> out;
                     out.push_back(compare::compared(store, run));
                     compare::add_audit(out.back(), *load());
                     return out;
                   }));
}

void ComparedReader::read_file(const std::filesystem::path& file) {
  start([load = context_, file](const ReportProgress&, const std::stop_token&) {
    return compare::compared_files(file, *load());
  });
}

void ComparedReader::start(Task::Work work) {
  Task& task = *tasks_.emplace_back(std::make_unique<Task>());
  connect(&task, &BackgroundWork::ended, this, &ComparedReader::deliver);
  task.start(std::move(work));
}

void ComparedReader::deliver() {
  while (!tasks_.empty() && !tasks_.front()->is_busy()) {
    Task* task = tasks_.front().release();
    tasks_.pop_front();
    task->deleteLater();  // may be emitting ended()
    if (task->result())
      emit read(*task->result());
    else if (task->problem())
      emit problem(*task->problem());
  }
  emit settled();
}

namespace {

constexpr QSize kSample(26, 14);
constexpr qsizetype kMost = 26;
enum class Kept { both_ends, beginning, end };

QString shortened(const QString& name, Kept kept) {
  if (name.size() <= kMost) return name;
  if (kept == Kept::both_ends) return name.left(kMost / 2) + u'\u2026' + name.right(kMost / 2 - 1);
  if (kept == Kept::beginning) return name.left(kMost - 1) + u'\u2026';
  return u'\u2026' + name.right(kMost - 1);
}

QStringList full_names(const std::vector<compare::ComparedRun>& runs) {
  QStringList names;
  for (const std::string& name : compare::distinct_names(runs)) names << qs(name);
  return names;
}

// The line of the run as in the charts: colour, style and mark.
QIcon line_sample(int at, formats::ResultProvenance provenance, double scale) {
  QPixmap pixmap(kSample * scale);
  pixmap.setDevicePixelRatio(scale);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  painter.setRenderHint(QPainter::Antialiasing);
  const QColor color = theme().series(at);
  const double y = kSample.height() / 2.0;
  painter.setPen(QPen(color, 2, pen_style(origin_of(provenance)), Qt::FlatCap));
  painter.drawLine(QPointF(0, y), QPointF(kSample.width(), y));
  painter.setPen(QPen(theme().panel, 1));
  painter.setBrush(color);
  paint_mark(painter, marks_of(at), QPointF(kSample.width() / 2.0, y));
  return QIcon(pixmap);
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
  return short_names(full_names(runs));
}

CompareTray::CompareTray(QWidget* parent)
    : QFrame(parent), chips_(new QTabBar(this)), hint_(muted_label({}, this)), add_(new QToolButton(this)) {
  setAcceptDrops(true);
  setAccessibleName(tr("Compared runs"));
  chips_->setObjectName(u"chips"_s);
  chips_->setAccessibleName(tr("Compared runs; the first is the baseline"));
  chips_->setDrawBase(false);
  chips_->setExpanding(false);
  chips_->setMovable(true);
  chips_->setElideMode(Qt::ElideMiddle);
  chips_->setIconSize(kSample);
  chips_->setMouseTracking(true);
  chips_->installEventFilter(this);
  connect(chips_, &QTabBar::tabMoved, this, &CompareTray::move_wanted);
  connect(chips_, &QTabBar::tabBarDoubleClicked, this, [this](int at) {
    if (at >= 0 && offers_[static_cast<size_t>(at)].open) emit open_wanted(at);
  });
  add_->setText(tr("+ Add"));
  add_->setProperty("chip", true);
  add_->setPopupMode(QToolButton::InstantPopup);
  add_->setStyleSheet(u"QToolButton::menu-indicator { image: none; }"_s);
  add_->setAccessibleName(tr("Add to the comparison"));
  add_->setToolTip(tr("Add a run, a shipped result or a result file"));
  auto* row = make_layout<QHBoxLayout>(this, {0, 0, 0, 0}, 6);
  row->addWidget(chips_);
  row->addWidget(hint_);
  row->addWidget(add_);
  row->addStretch(1);
}

void CompareTray::set_menu(QMenu* menu) {
  add_->setMenu(menu);
}

// Changes the chips in place, because a chip may be being dragged.
void CompareTray::show_runs(const std::vector<compare::ComparedRun>& runs, int pending) {
  const QSignalBlocker quiet(chips_);
  const int count = static_cast<int>(runs.size());
  while (chips_->count() > count) chips_->removeTab(chips_->count() - 1);
  while (chips_->count() < count) add_chip();
  offers_.clear();
  const QStringList names = full_names(runs), brief = short_names(names);
  for (int i = 0; i < count; ++i) show_chip(i, runs[static_cast<size_t>(i)], names[i], brief[i]);
  chips_->setVisible(count > 0);
  hint_->setText(pending > 0  ? tr("Reading\u2026")
                 : count == 0 ? tr("Drag runs or result files here, or press Add. The first run is the baseline.")
                              : QString());
  hint_->setVisible(!hint_->text().isEmpty());
}

void CompareTray::add_chip() {
  const int at = chips_->addTab({});
  QToolButton* close = flat_button(Glyph::close, tr("Remove this run"), chips_);
  close->setFocusPolicy(Qt::NoFocus);  // the Delete key does the same
  close->setIconSize({10, 10});
  connect(close, &QToolButton::clicked, this, [this, close] {
    for (int i = 0; i < chips_->count(); ++i)
      if (chips_->tabButton(i, QTabBar::RightSide) == close) return emit remove_wanted(i);
  });
  chips_->setTabButton(at, QTabBar::RightSide, close);
}

void CompareTray::show_chip(int at, const compare::ComparedRun& run, const QString& name, const QString& short_name) {
  const QString origin = origin_text(run.provenance);
  const QString role = at == 0 ? tr("baseline, %1").arg(origin) : origin;
  const std::string source = !run.id.empty() ? run.id : run.sweep ? run.sweep->set.source : std::string();
  chips_->setTabText(at, short_name);
  chips_->setTabIcon(at, line_sample(at, run.provenance, devicePixelRatioF()));
  chips_->setAccessibleTabName(at, tr("%1, %2").arg(name, role));
  chips_->setTabToolTip(
      at, tr("<b>%1</b><br>%2; %3<br>Drag or use Ctrl+Left and Ctrl+Right to reorder; Delete removes the run")
              .arg(name.toHtmlEscaped(), role, qs(source).toHtmlEscaped()));
  offers_.push_back({!run.id.empty(), compare::has_requests(run)});
}

void CompareTray::set_emphasised(int at) {
  if (at >= 0) chips_->setCurrentIndex(at);
}

bool CompareTray::eventFilter(QObject* watched, QEvent* event) {
  switch (event->type()) {
    case QEvent::MouseMove:
      if (const auto* move = static_cast<QMouseEvent*>(event); move->buttons() == Qt::NoButton)
        emit hovered(chips_->tabAt(move->pos()));
      break;
    case QEvent::Leave:
      emit hovered(-1);
      break;
    case QEvent::KeyPress: {
      const auto* key = static_cast<QKeyEvent*>(event);
      if (press(key->key(), key->modifiers())) return true;
      break;
    }
    case QEvent::ContextMenu: {
      const auto* menu = static_cast<QContextMenuEvent*>(event);
      const bool by_key = menu->reason() == QContextMenuEvent::Keyboard;
      open_menu(by_key ? chips_->currentIndex() : chips_->tabAt(menu->pos()), menu->globalPos());
      return true;
    }
    default:
      break;
  }
  return QFrame::eventFilter(watched, event);
}

bool CompareTray::press(int key, Qt::KeyboardModifiers modifiers) {
  const int at = chips_->currentIndex();
  if (at < 0) return false;
  if (modifiers == Qt::ControlModifier && (key == Qt::Key_Left || key == Qt::Key_Right)) {
    const int to = std::clamp(at + (key == Qt::Key_Left ? -1 : 1), 0, chips_->count() - 1);
    if (to == at) return true;
    emit move_wanted(at, to);
    chips_->setCurrentIndex(to);
  } else if (key == Qt::Key_Delete) {
    emit remove_wanted(at);
  } else if ((key == Qt::Key_Return || key == Qt::Key_Enter) && offers_[static_cast<size_t>(at)].open) {
    emit open_wanted(at);
  } else {
    return false;
  }
  return true;
}

void CompareTray::open_menu(int at, QPoint place) {
  if (at < 0) return;
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  const auto [opens, replays] = offers_[static_cast<size_t>(at)];
  const int last = chips_->count() - 1;
  menu->addAction(tr("Use as Baseline"), this, [this, at] { emit move_wanted(at, 0); })->setEnabled(at > 0);
  menu->addAction(tr("Move Left"), this, [this, at] { emit move_wanted(at, at - 1); })->setEnabled(at > 0);
  menu->addAction(tr("Move Right"), this, [this, at] { emit move_wanted(at, at + 1); })->setEnabled(at < last);
  menu->addSeparator();
  menu->addAction(tr("Open"), this, [this, at] { emit open_wanted(at); })->setEnabled(opens);
  menu->addAction(tr("Replay on Another Target\u2026"), this, [this, at] { emit replay_wanted(at); })
      ->setEnabled(replays);
  menu->addSeparator();
  menu->addAction(tr("Remove"), this, [this, at] { emit remove_wanted(at); });
  menu->popup(place);
}

void CompareTray::dragEnterEvent(QDragEnterEvent* event) {
  if (!event->mimeData()->hasFormat(run_mime_type()) && !event->mimeData()->hasUrls()) return;
  set_style_property(*this, "drop", true);
  event->acceptProposedAction();
}

void CompareTray::dragLeaveEvent(QDragLeaveEvent*) {
  set_style_property(*this, "drop", false);
}

void CompareTray::dropEvent(QDropEvent* event) {
  set_style_property(*this, "drop", false);
  event->acceptProposedAction();
  QStringList runs, files;
  for (const auto& run : runs_in(*event->mimeData())) runs << qs(run);
  for (const QUrl& url : event->mimeData()->urls())
    if (url.isLocalFile()) files << url.toLocalFile();
  if (!runs.isEmpty()) emit runs_dropped(runs);
  if (!files.isEmpty()) emit files_dropped(files);
}

}  // namespace mw::ui

#include "moc_compare_tray.cpp"
