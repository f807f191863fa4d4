// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/command_palette.h"

#include <QApplication>
#include <QGraphicsDropShadowEffect>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListView>
#include <QPainter>
#include <QStandardItemModel>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/theme/table_model.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr int kDetailRole = Qt::UserRole, kEntryRole = Qt::UserRole + 1;
constexpr int kPaletteRows = 200, kPaletteRowHeight = 27;

class PaletteDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const Theme& t = theme();
    const QRect r = option.rect.adjusted(2, 0, -2, 0);
    if (option.state & QStyle::State_Selected) {
      painter->setRenderHint(QPainter::Antialiasing);
      painter->setPen(Qt::NoPen);
      painter->setBrush(mix(t.panel, t.accent, t.shade == Shade::dark ? 0.38 : 0.2));
      painter->drawRoundedRect(r, 4, 4);
    }
    const QString detail = index.data(kDetailRole).toString();
    const int width = option.fontMetrics.horizontalAdvance(detail) + 12;
    painter->setPen(index.flags() & Qt::ItemIsEnabled ? t.text : t.faint);
    painter->drawText(r.adjusted(10, 0, -width - 8, 0), Qt::AlignVCenter,
                      option.fontMetrics.elidedText(index.data().toString(), Qt::ElideRight, r.width() - width - 26));
    painter->setPen(t.muted);
    painter->drawText(r.adjusted(0, 0, -10, 0), Qt::AlignVCenter | Qt::AlignRight, detail);
  }
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const override {
    return {option.rect.width(), kPaletteRowHeight};
  }
};

}  // namespace

int fuzzy_score(const QString& letters, const QString& text) {
  constexpr int kNever = -1000000;
  const auto n = static_cast<size_t>(text.size());
  std::vector<int> best(n, 0), next(n);  // of the letters so far, the last of them matched at this place
  bool first = true;
  for (const QChar wanted : letters) {
    if (wanted.isSpace()) continue;
    int carried = kNever;  // best of any earlier place, losing a little for every letter skipped
    for (size_t at = 0; at < n; ++at) {
      const QChar here = text[static_cast<qsizetype>(at)];
      const bool begins = at == 0 || !text[static_cast<qsizetype>(at) - 1].isLetterOrNumber();
      const int before = first ? -static_cast<int>(std::min<size_t>(at, 8)) / 4
                               : std::max(carried, at > 0 ? best[at - 1] + 12 : kNever);
      next[at] = here.toLower() == wanted.toLower() && before > kNever / 2 ? before + 4 + (begins ? 20 : 0) : kNever;
      carried = std::max(carried, best[at]) - (first ? 0 : 1);
    }
    best.swap(next);
    first = false;
  }
  if (first) return 0;
  const int top = n == 0 ? kNever : *std::max_element(best.begin(), best.end());
  return top < kNever / 2 ? -1 : std::max(0, 200 + top - static_cast<int>(n) / 4);
}

namespace {

// Puts a command or key of exactly this name first, then names that begin with it.
int bonus(const QString& letters, const PaletteEntry& entry) {
  constexpr int kExact = 20000, kBeginning = 10000;
  const QString wanted = letters.trimmed();
  if (wanted.isEmpty()) return 0;
  int best = 0;
  for (const QString& name : {entry.text, entry.text.section(u": "_s, -1), entry.detail}) {
    if (name.compare(wanted, Qt::CaseInsensitive) == 0) best = kExact;
    if (name.startsWith(wanted, Qt::CaseInsensitive)) best = std::max(best, kBeginning);
  }
  return best;
}

}  // namespace

CommandPalette::CommandPalette(QWidget* window)
    : QFrame(window), line_(new QLineEdit(this)), list_(new QListView(this)), model_(new QStandardItemModel(this)) {
  setObjectName(u"palette"_s);
  auto* column = make_layout<QVBoxLayout>(this, {1, 1, 1, 4}, 0);
  column->addWidget(line_);
  column->addWidget(list_, 1);
  line_->setPlaceholderText(tr("Type a command or a setting"));
  line_->setAccessibleName(tr("Command palette"));
  line_->installEventFilter(this);
  window->installEventFilter(this);
  list_->setModel(model_);
  list_->setItemDelegate(new PaletteDelegate(list_));
  list_->setUniformItemSizes(true);
  list_->setFocusPolicy(Qt::NoFocus);
  list_->setAccessibleName(tr("Matching commands"));
  list_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  show_when_empty(*list_, tr("No matches"));
  auto* shadow = new QGraphicsDropShadowEffect(this);
  shadow->setBlurRadius(28);
  shadow->setOffset(0, 6);
  shadow->setColor(QColor(0, 0, 0, 110));
  setGraphicsEffect(shadow);
  connect(line_, &QLineEdit::textChanged, this, &CommandPalette::filter);
  connect(list_, &QListView::clicked, this, &CommandPalette::choose);
  hide();
}

void CommandPalette::open(std::vector<PaletteEntry> entries) {
  entries_ = std::move(entries);
  previous_focus_ = QApplication::focusWidget();
  place();
  line_->clear();
  filter({});
  show();
  raise();
  line_->setFocus(Qt::PopupFocusReason);
}

void CommandPalette::place() {
  const QSize room = parentWidget()->size();
  const int width = std::min(620, room.width() - 60);
  setGeometry((room.width() - width) / 2, 56, width, std::min(430, room.height() - 100));
}

void CommandPalette::filter(const QString& letters) {
  std::vector<std::pair<int, size_t>> fits;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const PaletteEntry& e = entries_[i];
    const int score = std::max(fuzzy_score(letters, e.text), fuzzy_score(letters, e.detail) - 2);
    if (score >= 0) fits.emplace_back(score + bonus(letters, e), i);
  }
  std::stable_sort(fits.begin(), fits.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  model_->clear();
  for (size_t k = 0; k < std::min<size_t>(fits.size(), kPaletteRows); ++k) {
    const PaletteEntry& e = entries_[fits[k].second];
    auto* item = new QStandardItem(e.text);
    item->setData(e.detail, kDetailRole);
    item->setData(QVariant::fromValue(static_cast<qulonglong>(fits[k].second)), kEntryRole);
    item->setEnabled(e.enabled);
    model_->appendRow(item);
  }
  list_->setCurrentIndex(model_->index(0, 0));
}

void CommandPalette::step(int rows) {
  const int last = model_->rowCount() - 1;
  list_->setCurrentIndex(model_->index(std::clamp(list_->currentIndex().row() + rows, 0, std::max(last, 0)), 0));
}

int CommandPalette::shown() const {
  return model_->rowCount();
}

void CommandPalette::choose() {
  const QModelIndex at = list_->currentIndex();
  hide();
  if (previous_focus_) previous_focus_->setFocus();
  if (!at.isValid() || !(at.flags() & Qt::ItemIsEnabled)) return;
  const auto run = entries_[at.data(kEntryRole).toULongLong()].run;
  if (run) run();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
  if (watched == parentWidget()) {
    if (event->type() == QEvent::Resize && isVisible()) place();
    return false;
  }
  if (event->type() == QEvent::FocusOut) hide();
  if (event->type() == QEvent::KeyPress) {
    switch (static_cast<QKeyEvent*>(event)->key()) {
      case Qt::Key_Escape:
        hide();
        if (previous_focus_) previous_focus_->setFocus();
        return true;
      case Qt::Key_Return:
      case Qt::Key_Enter:
        choose();
        return true;
      case Qt::Key_Up:
        return step(-1), true;
      case Qt::Key_Down:
        return step(1), true;
      case Qt::Key_PageUp:
        return step(1 - list_->viewport()->height() / kPaletteRowHeight), true;
      case Qt::Key_PageDown:
        return step(list_->viewport()->height() / kPaletteRowHeight - 1), true;
      default:
        break;
    }
  }
  return QFrame::eventFilter(watched, event);
}

}  // namespace mw::ui

#include "moc_command_palette.cpp"
