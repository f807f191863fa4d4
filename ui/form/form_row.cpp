// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/form_row.h"

#include <QGridLayout>
#include <QLabel>
#include <QToolButton>
#include <algorithm>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {
constexpr int kLabelWidth = 100, kResetWidth = 20;

// A value that is not allowed is explained by what to enter instead.
QString problem_text(const Problem& p) {
  const bool is_value = p.id == "TYPE" || p.id == "RANGE" || p.id == "CHOICE";
  return is_value || p.fix.empty() ? capitalized(qs(is_value ? p.fix : p.message))
                                   : capitalized(qs(p.message)) + u": "_s + qs(p.fix);
}

}  // namespace

FormRow::FormRow(const experiment::Parameter& parameter, Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      field_(make_field(parameter, this)),
      label_(new QLabel(this)),
      problem_(new QLabel(this)),
      reset_(flat_button(Glyph::reset, tr("Reset %1 to its default").arg(qs(parameter.label)), this)) {
  auto* grid = make_layout<QGridLayout>(this, {0, 1, 0, 1});
  grid->setHorizontalSpacing(4);
  grid->setVerticalSpacing(1);
  label_->setFixedWidth(kLabelWidth);
  label_->setToolTip(describe(parameter));
  label_->setBuddy(field_->editor());
  reset_->setFixedSize(kResetWidth, kResetWidth);
  reset_->setToolTip(
      tr("Reset to the default: %1").arg(parameter.fallback.empty() ? tr("empty") : field_text(parameter.fallback)));
  QSizePolicy keep = reset_->sizePolicy();
  keep.setRetainSizeWhenHidden(true);  // keeps the width of fields constant
  reset_->setSizePolicy(keep);
  problem_->setWordWrap(true);
  problem_->setProperty("bad", true);
  problem_->setFont(small_font());
  problem_->hide();
  // Buttons for each value take a row of their own.
  const bool tall = parameter.type == experiment::ParamType::list && !parameter.choices.empty();
  grid->addWidget(label_, 0, 0, Qt::AlignVCenter);
  grid->addWidget(field_, tall ? 1 : 0, tall ? 0 : 1, 1, tall ? 3 : 1);
  grid->addWidget(reset_, 0, 2, Qt::AlignTop);
  grid->addWidget(problem_, 2, tall ? 0 : 1, 1, tall ? 3 : 2);
  grid->setColumnStretch(1, 1);
  field_->edit(document_);
  connect(reset_, &QToolButton::clicked, this, [this] { document_.reset(field_->key()); });
  refresh();
}

void FormRow::refresh() {
  const Json* value = raw_value(document_.experiment(), field_->key());
  field_->show_value(value);
  if (set_ != (value != nullptr) || label_->text().isEmpty()) {
    set_ = value != nullptr;
    show_label();
  }
  reset_->setVisible(set_);
  QString wrong;
  for (const Problem& p : document_.problems()) {
    if (!covers(p.place) || p.severity == Severity::info) continue;
    wrong = problem_text(p);
    break;
  }
  problem_shown_ = !wrong.isEmpty();
  if (problem_->text() != wrong) problem_->setText(wrong);
  problem_->setVisible(problem_shown_);
}

void FormRow::show_label() {
  set_style_property(*label_, "set", set_);  // bold by the style sheet, which overrides the font of the label
  label_->setText(field_->label());
  // Only bold labels may need a second line; wrapping is expensive to lay out.
  label_->setWordWrap(label_->fontMetrics().horizontalAdvance(field_->label()) > kLabelWidth - 2);
}

void FormRow::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  show_label();
}

bool FormRow::matches(const QString& words) const {
  const experiment::Parameter& p = field_->parameter();
  QString all = qs(p.key + " " + p.label + " " + p.help + " " + p.group);
  for (const std::string_view name : p.columns.names.all()) all += u' ' + qs(std::string(name));
  const auto parts = words.split(u' ', Qt::SkipEmptyParts);
  return std::all_of(parts.begin(), parts.end(),
                     [&](const QString& w) { return all.contains(w, Qt::CaseInsensitive); });
}

bool FormRow::covers(const std::string& place) const {
  const std::string& key = field_->key();
  return place == key || (place.size() > key.size() && place.starts_with(key) && place[key.size()] == '.');
}

}  // namespace mw::ui

#include "moc_form_row.cpp"
