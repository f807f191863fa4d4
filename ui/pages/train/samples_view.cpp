// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/samples_view.h"

#include <QScrollBar>

#include "core/views/streamed_answer.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

QString html(const std::string& text) {
  return qs(text).toHtmlEscaped().replace(u'\n', u"<br>"_s);
}

// Missing words are struck through, additional ones underlined, so that colour alone carries no meaning.
QString difference_html(const views::SampleShown& sample) {
  QString out;
  views::TextPart::Kind before = views::TextPart::Kind::same;
  for (const views::TextPart& part : views::text_difference(sample.expected, sample.text)) {
    if (before == views::TextPart::Kind::missing && part.kind == views::TextPart::Kind::extra) out += u' ';
    before = part.kind;
    const bool missing = part.kind == views::TextPart::Kind::missing;
    out += part.kind == views::TextPart::Kind::same
               ? html(part.text)
               : u"<span style='color:%1; text-decoration:%2'>%3</span>"_s.arg(
                     (missing ? theme().bad : theme().good).name(), missing ? u"line-through"_s : u"underline"_s,
                     html(part.text));
  }
  return out;
}

}  // namespace

SampleDetail::SampleDetail(QWidget* parent) : QTextEdit(parent) {
  setReadOnly(true);
  setTabChangesFocus(true);
  setAccessibleName(tr("Selected sample"));
  setToolTip(tr("Press Escape to close the sample"));
  hide();
}

void SampleDetail::show_sample(const views::SampleShown& sample) {
  QString text =
      u"<p><b>%1</b></p>"_s.arg(sample.verdict.empty() ? tr("Step %1").arg(sample.step)
                                                       : tr("Step %1: %2").arg(sample.step).arg(qs(sample.verdict)));
  const auto section = [&](const QString& title, const QString& content) {
    text += u"<p><span style='color:%1'>%2</span><br>%3</p>"_s.arg(theme().muted.name(), title, content);
  };
  if (!sample.expected.empty() && sample.expected != sample.text)
    section(tr("Difference (expected words that are missing are struck through, additional ones underlined)"),
            difference_html(sample));
  section(tr("Answer"), html(sample.text));
  if (!sample.expected.empty()) section(tr("Expected"), html(sample.expected));
  section(tr("Prompt"), html(sample.prompt));
  setHtml(text);
  show();
}

void SampleDetail::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape)
    hide();
  else
    QTextEdit::keyPressEvent(event);
}

namespace {

// Omits the turn markers of the chat template, which are the same in every row; the tooltip has them.
QString without_turns(const std::string& prompt) {
  QString s = qs(prompt);
  static const QRegularExpression marks(
      u"<bos>|<(start|end)_of_turn>(user|model)?\\n?|<\\|?turn\\|?>(user|model)?\\n?"_s);
  return s.remove(marks).trimmed();
}

QString one_line(const std::string& text) {
  QString s = qs(text);
  return s.replace(u'\n', u'\u23CE').trimmed();
}

QString verdict_text(const views::SampleShown& s) {
  if (s.verdict == "right") return SamplesModel::tr("\u2713 right");
  return s.verdict == "wrong" ? SamplesModel::tr("\u2717 wrong") : qs(s.verdict);
}

QVariant sample_cell(const views::SampleShown& s, int column, int role) {
  if (role == Qt::ForegroundRole && column == SamplesModel::verdict)
    return s.verdict == "right" ? theme().good : s.verdict == "wrong" ? theme().bad : theme().muted;
  if (role != Qt::ToolTipRole) return {};
  return column == SamplesModel::prompt     ? qs(s.prompt)
         : column == SamplesModel::answer   ? qs(s.text)
         : column == SamplesModel::expected ? qs(s.expected)
                                            : QVariant();
}

}  // namespace

SamplesModel::SamplesModel()
    : TableModel({number(tr("Step"), [](const auto& s) { return QString::number(s.step); }),
                  {.title = tr("Verdict"), .text = verdict_text},
                  {.title = tr("Prompt"), .text = [](const auto& s) { return one_line(ss(without_turns(s.prompt))); }},
                  {.title = tr("Output"), .text = [](const auto& s) { return one_line(s.text); }},
                  {.title = tr("Expected"), .text = [](const auto& s) { return one_line(s.expected); }}},
                 sample_cell) {}

void SamplesModel::show_run(RunPtr run) {
  beginResetModel();
  run_ = std::move(run);
  shown_ = run_ ? static_cast<int>(run_->view.samples().size()) : 0;
  endResetModel();
}

void SamplesModel::grow() {
  const int now = run_ ? static_cast<int>(run_->view.samples().size()) : 0;
  if (now > shown_) {
    beginInsertRows({}, 0, now - shown_ - 1);
    shown_ = now;
    endInsertRows();
  } else if (now < shown_) {
    beginResetModel();
    shown_ = now;
    endResetModel();
  }
}

const views::SampleShown& SamplesModel::row(int at) const {
  static const views::SampleShown kGone;  // the run rewound, and grow() has not been called yet
  const auto& samples = run_->view.samples();
  return static_cast<size_t>(shown_) <= samples.size() ? samples[static_cast<size_t>(shown_ - 1 - at)] : kGone;
}

SamplesView::SamplesView(ChartLink& steps, QWidget* parent)
    : QSplitter(Qt::Horizontal, parent),
      steps_(steps),
      table_(make_table(rows_, tr("Samples by step"))),
      detail_(new SampleDetail) {
  show_when_empty(*table_, tr("No samples from held-out prompts yet"));
  table_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  for (const auto& [c, w] : {std::pair{SamplesModel::step, 56}, std::pair{SamplesModel::verdict, 74}}) {
    table_->horizontalHeader()->setSectionResizeMode(c, QHeaderView::Fixed);
    table_->setColumnWidth(c, w);
  }
  table_->setMinimumWidth(160);
  addWidget(table_);
  addWidget(detail_);
  setHandleWidth(5);
  setSizes({500, 400});
  connect(table_, &QTableView::clicked, this, [this](const QModelIndex& at) { open(at.row()); });
  connect(table_, &QTableView::activated, this, [this](const QModelIndex& at) { open(at.row()); });
}

void SamplesView::show_run(const RunPtr& run) {
  run_ = run;
  detail_->hide();
  rows_.show_run(run);
}

// New rows are inserted at the top; the visible rows stay if the user has scrolled or pinned a step.
void SamplesView::grow() {
  const bool newest = table_->verticalScrollBar()->value() == 0 && !steps_.playhead();
  const QPersistentModelIndex top = table_->indexAt(QPoint(0, 0));
  rows_.grow();
  if (!newest && top.isValid()) table_->scrollTo(top, QAbstractItemView::PositionAtTop);
}

void SamplesView::open(int row) {
  table_->selectRow(row);
  detail_->show_sample(rows_.row(row));
  steps_.set_playhead(static_cast<double>(rows_.step_of(row)));
}

void SamplesView::follow_playhead() {
  const auto head = steps_.playhead();
  if (!head || !run_) {
    if (table_->selectionModel()->hasSelection()) table_->scrollToTop();  // unpinned: shows the newest
    table_->clearSelection();
    return;
  }
  rows_.grow();
  // The last samples at or before the playhead.
  int row = 0;
  while (row < rows_.rowCount() && static_cast<double>(rows_.step_of(row)) > *head + 0.5) ++row;
  if (row == rows_.rowCount()) {
    table_->clearSelection();
    return;
  }
  const int selected = table_->currentIndex().row();
  if (selected >= 0 && rows_.step_of(selected) == rows_.step_of(row)) return;  // of that step, too
  const QSignalBlocker quiet(table_);
  table_->selectRow(row);
  table_->scrollTo(rows_.index(row, 0), QAbstractItemView::PositionAtTop);
}

}  // namespace mw::ui

#include "moc_samples_view.cpp"
