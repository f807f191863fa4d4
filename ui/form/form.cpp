// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/form.h"

#include <QLineEdit>
#include <QScrollArea>
#include <QTimer>
#include <algorithm>

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

Form::Form(Document& document, QWidget* parent)
    : QWidget(parent), document_(document), search_(new QLineEdit(this)), scroll_(new QScrollArea(this)) {
  auto* column = flush_layout<QVBoxLayout>(this, 0);
  search_->setPlaceholderText(tr("Find a setting"));
  search_->setAccessibleName(tr("Find a setting"));
  search_->setClearButtonEnabled(true);
  search_->addAction(icon(Glyph::search), QLineEdit::LeadingPosition);
  auto* top = make_layout<QHBoxLayout>(nullptr, {8, 6, 8, 6});
  top->addWidget(search_);
  column->addLayout(top);
  auto* body = new QWidget;
  body->setObjectName(u"formBody"_s);
  build(body);
  scroll_->setWidget(body);
  scroll_->setWidgetResizable(true);
  scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll_->setFocusPolicy(Qt::NoFocus);
  column->addWidget(scroll_, 1);
  connect(search_, &QLineEdit::textChanged, this, [this] { arrange(); });
  connect(&document_, &Document::changed, this, &Form::refresh);
  refresh();
}

QToolButton* Form::add_fold(QBoxLayout& column, const char* style, const QString& text) {
  auto* button = new QToolButton(column.parentWidget());
  button->setProperty(style, true);
  button->setText(text);
  button->setCheckable(true);
  button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  button->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  column.addWidget(button);
  connect(button, &QToolButton::toggled, this, [this] {
    if (others_) arrange();
  });
  return button;
}

Form::Section Form::make_section(QBoxLayout& column, const std::string& group) {
  Section s;
  s.header = add_fold(column, "group", qs(group));
  s.header->setChecked(true);
  s.header->setAccessibleName(tr("%1 settings").arg(qs(group)));
  s.group = group;
  s.note = muted_label({}, column.parentWidget());
  s.note->setWordWrap(true);
  s.note->setAccessibleName(tr("%1, predicted").arg(qs(group)));
  column.addWidget(s.note);
  const auto add = [&](experiment::Level level, std::vector<FormRow*>& rows) {
    for (const auto& p : experiment::parameters()) {
      if (p.group != group || p.level != level) continue;
      rows.push_back(new FormRow(p, document_, column.parentWidget()));
      column.addWidget(rows.back());
    }
  };
  add(experiment::Level::basic, s.basic);
  s.more = add_fold(column, "more", {});
  s.more->setAccessibleName(tr("Advanced %1 settings").arg(qs(group)));
  add(experiment::Level::advanced, s.advanced);
  s.gap = new QWidget(column.parentWidget());
  s.gap->setFixedHeight(8);
  column.addWidget(s.gap);
  return s;
}

void Form::build(QWidget* body) {
  auto* column = make_layout<QVBoxLayout>(body, {10, 0, 6, 10}, 0);
  std::vector<std::string> groups;
  for (const auto& p : experiment::parameters())
    if (std::find(groups.begin(), groups.end(), p.group) == groups.end()) groups.push_back(p.group);
  for (const std::string& group : groups) sections_.push_back(make_section(*column, group));
  others_ = add_fold(*column, "more", tr("Show Settings Without Effect"));
  others_->setToolTip(tr("Show also the settings that this kind of experiment does not use on this target"));
  column->addStretch(1);
}

void Form::refresh() {
  for (Section& s : sections_)
    for (auto* rows : {&s.basic, &s.advanced})
      for (FormRow* r : *rows) r->refresh();
  set_kind(kind_);
  arrange();
}

void Form::set_kind(experiment::Kind kind) {
  const experiment::Relevance now = experiment::relevance(document_.experiment(), kind, stack_);
  kind_ = kind;
  if (std::exchange(relevance_, now) == now) return;
  for (Section& s : sections_)
    for (auto* rows : {&s.basic, &s.advanced})
      for (FormRow* r : *rows) r->set_concerned(now.concerns(r->field()->parameter()));
  arrange();
}

void Form::set_stack(std::optional<model::Stack> stack) {
  stack_ = stack;
  set_kind(kind_);
}

void Form::arrange() {
  const QString words = search_->text().trimmed();
  for (Section& s : sections_) arrange(s, words);
  others_->setArrowType(others_->isChecked() ? Qt::DownArrow : Qt::RightArrow);
  others_->setVisible(words.isEmpty());
}

void Form::arrange(Section& s, const QString& words) {
  const bool open = s.header->isChecked(), unfolded = s.more->isChecked();
  const auto has_effect = [this](const FormRow* r) { return others_->isChecked() || r->is_concerned(); };
  // Rows that are set stay visible when their group is folded, invalid ones always.
  const auto is_kept = [&](const FormRow* r) { return (r->is_set() && has_effect(r)) || r->has_problem(); };
  bool any = false;
  const auto place = [&](FormRow* row, bool normally) {
    const bool shown = words.isEmpty() ? normally : row->matches(words);
    row->setVisible(shown);
    any |= shown;
  };
  for (FormRow* r : s.basic) place(r, open && (has_effect(r) || r->has_problem()));
  for (FormRow* r : s.advanced) place(r, open && ((unfolded && has_effect(r)) || is_kept(r)));
  const auto folded = std::count_if(s.advanced.begin(), s.advanced.end(),
                                    [&](const FormRow* r) { return has_effect(r) && !is_kept(r); });
  const bool concerned = folded > 0 || std::any_of(s.basic.begin(), s.basic.end(), has_effect);
  s.header->setArrowType(open || !words.isEmpty() ? Qt::DownArrow : Qt::RightArrow);
  const bool shown = any || (words.isEmpty() && concerned);
  s.header->setVisible(shown);
  s.gap->setVisible(shown);
  s.note->setVisible(open && words.isEmpty() && concerned && !s.note->text().isEmpty());
  s.more->setVisible(words.isEmpty() && open && folded > 0);
  s.more->setArrowType(unfolded ? Qt::DownArrow : Qt::RightArrow);
  s.more->setText(unfolded ? tr("Show Fewer") : tr("Show %1 More").arg(folded));
}

void Form::set_note(const std::string& group, const QString& text) {
  for (Section& s : sections_) {
    if (s.group != group || s.note->text() == text) continue;
    s.note->setText(text);
    arrange(s, search_->text().trimmed());
  }
}

FormRow* Form::row(const std::string& key) {
  for (Section& s : sections_)
    for (auto* rows : {&s.basic, &s.advanced})
      for (FormRow* r : *rows)
        if (r->covers(key)) return r;
  return nullptr;
}

bool Form::focus_key(const std::string& key) {
  FormRow* target = row(key);
  if (!target) return false;
  search_->clear();
  for (Section& s : sections_) {
    const bool here = std::find(s.basic.begin(), s.basic.end(), target) != s.basic.end();
    const bool folded = std::find(s.advanced.begin(), s.advanced.end(), target) != s.advanced.end();
    if (here || folded) s.header->setChecked(true);
    if (folded) s.more->setChecked(true);
  }
  if (!target->is_concerned()) others_->setChecked(true);
  // Scrolls after the layout is updated; before, positions are those of the folded form.
  QTimer::singleShot(0, target, [this, target] {
    scroll_->ensureWidgetVisible(target, 0, 40);
    target->field()->editor()->setFocus(Qt::OtherFocusReason);
  });
  return true;
}

}  // namespace mw::ui

#include "moc_form.cpp"
