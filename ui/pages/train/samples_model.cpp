// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/samples_model.h"

#include <QColor>
#include <QRegularExpression>

#include "ui/theme/text.h"
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

}  // namespace

void SamplesModel::show_run(RunPtr run) {
  beginResetModel();
  run_ = std::move(run);
  rows_ = run_ ? static_cast<int>(run_->view.samples().size()) : 0;
  endResetModel();
}

void SamplesModel::grow() {
  const int now = run_ ? static_cast<int>(run_->view.samples().size()) : 0;
  if (now > rows_) {
    beginInsertRows({}, 0, now - rows_ - 1);
    rows_ = now;
    endInsertRows();
  } else if (now < rows_) {
    beginResetModel();
    rows_ = now;
    endResetModel();
  }
}

int SamplesModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : rows_;
}

int SamplesModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

const views::SampleShown& SamplesModel::sample(int row) const {
  return run_->view.samples()[static_cast<size_t>(rows_ - 1 - row)];
}

QVariant SamplesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rows_ || static_cast<size_t>(rows_) > run_->view.samples().size()) return {};
  const views::SampleShown& s = sample(index.row());
  const bool whole = role == Qt::ToolTipRole;
  if (role == Qt::DisplayRole || whole) switch (index.column()) {
      case step:
        return whole ? QVariant() : QVariant(static_cast<qlonglong>(s.step));
      case verdict:
        return s.verdict == "right"   ? QString(u"\u2713 "_s + tr("right"))
               : s.verdict == "wrong" ? QString(u"\u2717 "_s + tr("wrong"))
                                      : qs(s.verdict);
      case prompt:
        return whole ? qs(s.prompt) : one_line(ss(without_turns(s.prompt)));
      case text:
        return whole ? qs(s.text) : one_line(s.text);
      case expected:
        return whole ? qs(s.expected) : one_line(s.expected);
    }
  if (role == Qt::ForegroundRole && index.column() == verdict)
    return s.verdict == "right" ? theme().good : s.verdict == "wrong" ? theme().bad : theme().muted;
  if (role == Qt::TextAlignmentRole && index.column() == step)
    return static_cast<int>(Qt::AlignRight | Qt::AlignVCenter);
  return {};
}

QVariant SamplesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  switch (section) {
    case step:
      return tr("Step");
    case verdict:
      return tr("Verdict");
    case prompt:
      return tr("Prompt");
    case text:
      return tr("Answer");
    case expected:
      return tr("Expected");
  }
  return {};
}

}  // namespace mw::ui
