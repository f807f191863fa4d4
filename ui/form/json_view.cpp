// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/json_view.h"

#include <QAbstractItemView>
#include <QCompleter>
#include <QHeaderView>
#include <QPainter>
#include <QRegularExpression>
#include <QStandardItemModel>
#include <QTextBlock>
#include <QTreeView>

#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

class Gutter : public QWidget {
 public:
  explicit Gutter(JsonEdit* edit) : QWidget(edit), edit_(edit) {}

 protected:
  void paintEvent(QPaintEvent* event) override { edit_->paint_gutter(event); }

 private:
  JsonEdit* edit_;
};

// The line of "line 3, column 14" or "3:14"; 0: none.
int line_of(const QString& place) {
  static const QRegularExpression number(u"(\\d+)"_s);
  return number.match(place).captured(1).toInt();
}

constexpr int kSuggestedRows = 10, kSuggestedWidth = 560;  // rows; pixels

// Two columns: the suggestion and what it means.
QTreeView* make_suggestion_list() {
  auto* list = new QTreeView;
  list->setRootIsDecorated(false);
  list->setHeaderHidden(true);
  list->setUniformRowHeights(true);
  list->setSelectionBehavior(QAbstractItemView::SelectRows);
  list->setEditTriggers(QAbstractItemView::NoEditTriggers);
  list->setAccessibleName(JsonEdit::tr("Suggestions"));
  return list;
}

}  // namespace

void JsonHighlighter::highlightBlock(const QString& text) {
  static const QRegularExpression tokens(uR"re("(?:[^"\\]|\\.)*"(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b)re"_s);
  const Theme& t = theme();
  for (auto it = tokens.globalMatch(text); it.hasNext();) {
    const auto m = it.next();
    const QChar first = m.captured(0).front();
    const bool key = !m.captured(1).isEmpty();
    const QColor color = first != u'"' ? t.series(1) : key ? t.series(0) : t.series(2);
    setFormat(static_cast<int>(m.capturedStart()), static_cast<int>(m.capturedLength() - m.capturedLength(1)), color);
  }
}

JsonEdit::JsonEdit(QWidget* parent)
    : QPlainTextEdit(parent),
      gutter_(new Gutter(this)),
      completer_(new QCompleter(this)),
      suggested_(new QStandardItemModel(0, 2, this)) {
  setUndoRedoEnabled(false);
  setWordWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
  setFont(mono_font(0.95));
  setTabStopDistance(2 * fontMetrics().horizontalAdvance(u' '));
  setAccessibleName(tr("Experiment as JSON"));
  connect(this, &QPlainTextEdit::blockCountChanged, this, [this] { setViewportMargins(gutter_width(), 0, 0, 0); });
  connect(this, &QPlainTextEdit::updateRequest, this, [this](const QRect& rect, int dy) {
    if (dy != 0)
      gutter_->scroll(0, dy);
    else
      gutter_->update(0, rect.y(), gutter_->width(), rect.height());
  });
  setViewportMargins(gutter_width(), 0, 0, 0);
  completer_->setModel(suggested_);
  completer_->setPopup(make_suggestion_list());
  completer_->setCompletionMode(QCompleter::UnfilteredPopupCompletion);
  completer_->setMaxVisibleItems(kSuggestedRows);
  completer_->setWidget(this);
  connect(completer_, qOverload<const QModelIndex&>(&QCompleter::activated), this,
          [this](const QModelIndex& index) { insert_suggestion(index.row()); });
}

// The keys that choose a suggestion are the list's. Tab chooses the first one.
void JsonEdit::keyPressEvent(QKeyEvent* event) {
  QAbstractItemView* list = completer_->popup();
  if (list->isVisible()) {
    const bool is_tab = event->key() == Qt::Key_Tab;
    if (is_tab && !list->currentIndex().isValid()) list->setCurrentIndex(list->model()->index(0, 0));
    const bool chooses = is_tab || event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    if (chooses && list->currentIndex().isValid()) {
      const int row = list->currentIndex().row();
      list->hide();
      return insert_suggestion(row);
    }
    if (event->key() == Qt::Key_Escape) return list->hide();
  }
  const bool is_asked = event->key() == Qt::Key_Space && event->modifiers() == Qt::ControlModifier;
  if (!is_asked) QPlainTextEdit::keyPressEvent(event);
  const QString typed = event->text();
  const bool is_word = !typed.isEmpty() && (typed[0].isLetterOrNumber() || typed[0] == u'_' || typed[0] == u'"');
  const bool goes_on = list->isVisible() && event->key() == Qt::Key_Backspace;
  if (is_asked || is_word || goes_on)
    suggest();
  else if (!typed.isEmpty())
    list->hide();
}

void JsonEdit::suggest() {
  static const Json schema = experiment::experiment_schema();
  const QString text = toPlainText();
  const auto cursor = text.left(textCursor().position()).toUtf8().size();
  completion_ = experiment::complete_json(schema, ss(text), static_cast<size_t>(cursor));
  const auto& found = completion_.suggestions;
  const std::string typed = ss(text).substr(completion_.begin, completion_.end - completion_.begin);
  suggested_->setRowCount(0);
  for (const experiment::JsonSuggestion& s : found)
    suggested_->appendRow({new QStandardItem(qs(s.text)), new QStandardItem(qs(s.help))});
  if (found.empty() || (found.size() == 1 && found[0].text == typed)) return completer_->popup()->hide();
  auto* list = static_cast<QTreeView*>(completer_->popup());
  list->header()->setStretchLastSection(true);
  QRect at = cursorRect().translated(viewport()->pos());
  at.setWidth(std::min(kSuggestedWidth, window()->width()));
  completer_->complete(at);
  list->resizeColumnToContents(0);
  list->setCurrentIndex({});
}

void JsonEdit::insert_suggestion(int row) {
  if (row < 0 || static_cast<size_t>(row) >= completion_.suggestions.size()) return;
  const std::string text = ss(toPlainText());
  const auto position = [&](size_t offset) { return static_cast<int>(qs(text.substr(0, offset)).size()); };
  if (completion_.end > text.size()) return;
  QTextCursor cursor = textCursor();
  cursor.setPosition(position(completion_.begin));
  cursor.setPosition(position(completion_.end), QTextCursor::KeepAnchor);
  cursor.insertText(qs(completion_.replacement(static_cast<size_t>(row))));
  setTextCursor(cursor);
}

int JsonEdit::gutter_width() const {
  const auto digits = QString::number(std::max(99, blockCount())).size();
  return 12 + static_cast<int>(digits) * fontMetrics().horizontalAdvance(u'9');
}

bool JsonEdit::event(QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->matches(QKeySequence::Undo) || key->matches(QKeySequence::Redo)) {
      event->ignore();
      return true;
    }
  }
  return QPlainTextEdit::event(event);
}

void JsonEdit::resizeEvent(QResizeEvent* event) {
  QPlainTextEdit::resizeEvent(event);
  gutter_->setGeometry(0, 0, gutter_width(), height());
}

void JsonEdit::paint_gutter(QPaintEvent* event) {
  QPainter painter(gutter_);
  const Theme& t = theme();
  painter.fillRect(event->rect(), mix(t.field, t.text, 0.03));
  painter.setFont(font());
  for (QTextBlock block = firstVisibleBlock(); block.isValid(); block = block.next()) {
    const QRectF at = blockBoundingGeometry(block).translated(contentOffset());
    if (at.top() > event->rect().bottom()) break;
    const int line = block.blockNumber() + 1;
    painter.setPen(line == marked_ ? t.bad : t.faint);
    painter.drawText(QRectF(0, at.top(), gutter_width() - 6, fontMetrics().height()), Qt::AlignRight,
                     QString::number(line));
  }
}

void JsonEdit::mark_line(int line) {
  marked_ = line;
  QList<QTextEdit::ExtraSelection> marks;
  if (const QTextBlock block = document()->findBlockByNumber(line - 1); line > 0 && block.isValid()) {
    QTextEdit::ExtraSelection mark;
    mark.format.setBackground(mix(theme().field, theme().bad, 0.18));
    mark.format.setProperty(QTextFormat::FullWidthSelection, true);
    mark.cursor = QTextCursor(block);
    marks.push_back(mark);
  }
  setExtraSelections(marks);
  gutter_->update();
}

JsonView::JsonView(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      edit_(new JsonEdit(this)),
      highlighter_(new JsonHighlighter(edit_->document())),
      notice_(new QFrame(this)),
      notice_text_(new QLabel(notice_)) {
  auto* column = flush_layout<QVBoxLayout>(this, 0);
  notice_->setObjectName(u"notice"_s);
  auto* row = make_layout<QHBoxLayout>(notice_, {8, 4, 6, 4});
  notice_text_->setWordWrap(true);
  row->addWidget(notice_text_, 1);
  auto* discard = new QPushButton(tr("Discard Text"), notice_);
  discard->setToolTip(tr("Restore the last valid document; undo brings the text back"));
  row->addWidget(discard);
  column->addWidget(notice_);
  column->addWidget(edit_, 1);
  connect(discard, &QPushButton::clicked, this, [this] { document_.discard_text(); });
  connect(edit_, &QPlainTextEdit::textChanged, this, [this] {
    if (writing_) return;
    document_.set_text(ss(edit_->toPlainText()));
    idle_.start();
  });
  idle_.setSingleShot(true);
  idle_.setInterval(1200);
  connect(&idle_, &QTimer::timeout, this, [this] { document_.end_gesture(); });
  connect(&document_, &Document::changed, this, &JsonView::refresh);
  refresh();
}

void JsonView::refresh() {
  const QString text = qs(document_.json_text());
  if (text != edit_->toPlainText()) {
    const QTextCursor old = edit_->textCursor();
    const int line = old.blockNumber(), column = old.positionInBlock();
    writing_ = true;
    edit_->setPlainText(text);
    writing_ = false;
    const QTextBlock block = edit_->document()->findBlockByNumber(std::min(line, edit_->blockCount() - 1));
    QTextCursor cursor(block);
    cursor.movePosition(QTextCursor::Right, QTextCursor::MoveAnchor, std::min(column, block.length() - 1));
    edit_->setTextCursor(cursor);
  }
  const bool broken = document_.has_invalid_text();
  if (broken) {
    const Problem& p = document_.problems().front();
    notice_text_->setText(tr("%1: %2. The form shows the last valid document.").arg(qs(p.place), qs(p.message)));
    edit_->mark_line(line_of(qs(p.place)));
  } else {
    edit_->mark_line(0);
  }
  notice_->setVisible(broken);
}

void JsonView::restyle() {
  writing_ = true;  // highlighting is not an edit
  highlighter_->rehighlight();
  writing_ = false;
  refresh();
}

void JsonView::focus_place(const std::string& place) {
  edit_->setFocus(Qt::OtherFocusReason);
  int line = line_of(qs(place));
  if (line == 0) {  // a key: finds the line of its last part below its section
    const QStringList parts = qs(place).split(u'.');
    QTextCursor at(edit_->document());
    for (const QString& part : parts) {
      const QTextCursor found = edit_->document()->find(QString(u'"' + part + u'"'), at);
      if (found.isNull()) break;
      at = found;
    }
    line = at.blockNumber() + 1;
  }
  edit_->setTextCursor(QTextCursor(edit_->document()->findBlockByNumber(line - 1)));
  edit_->centerCursor();
}

}  // namespace mw::ui

#include "moc_json_view.cpp"
