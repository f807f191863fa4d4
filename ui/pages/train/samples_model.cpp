// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/samples_model.h"

#include <QRegularExpression>

#include "ui/theme/theme.h"

namespace mw::ui {
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
    : TableModel({number_column<views::SampleShown>(
                      tr("Step"), [](const views::SampleShown& s) { return QString::number(s.step); }),
                  {.title = tr("Verdict"), .text = verdict_text},
                  {.title = tr("Prompt"),
                   .text = [](const views::SampleShown& s) { return one_line(ss(without_turns(s.prompt))); }},
                  {.title = tr("Output"), .text = [](const views::SampleShown& s) { return one_line(s.text); }},
                  {.title = tr("Expected"), .text = [](const views::SampleShown& s) { return one_line(s.expected); }}},
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

}  // namespace mw::ui
