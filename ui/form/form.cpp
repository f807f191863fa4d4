// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/form.h"

#include <QLineEdit>
#include <QScrollArea>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/theme/icons.h"
#include "ui/theme/text.h"
#include "ui/theme/widgets.h"

namespace mw::ui {

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
  connect(search_, &QLineEdit::textChanged, this, &Form::arrange);
  connect(&document_, &Document::changed, this, &Form::refresh);
  arrange();
}

void Form::build(QWidget* body) {
  auto* column = make_layout<QVBoxLayout>(body, {10, 0, 6, 10}, 0);
  std::vector<std::string> groups;
  for (const auto& p : experiment::parameters())
    if (std::find(groups.begin(), groups.end(), p.group) == groups.end()) groups.push_back(p.group);
  const auto button = [&](const char* style, const QString& text) {
    auto* b = new QToolButton(body);
    b->setProperty(style, true);
    b->setText(text);
    b->setCheckable(true);
    b->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    b->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    column->addWidget(b);
    connect(b, &QToolButton::toggled, this, &Form::arrange);
    return b;
  };
  for (const std::string& group : groups) {
    Section s;
    s.header = button("group", qs(group));
    s.header->setChecked(true);
    s.header->setAccessibleName(tr("%1 settings").arg(qs(group)));
    const auto add = [&](experiment::Level level, std::vector<FormRow*>& rows) {
      for (const auto& p : experiment::parameters()) {
        if (p.group != group || p.level != level) continue;
        rows.push_back(new FormRow(p, document_, body));
        column->addWidget(rows.back());
      }
    };
    add(experiment::Level::basic, s.basic);
    const auto count =
        std::count_if(experiment::parameters().begin(), experiment::parameters().end(),
                      [&](const auto& p) { return p.group == group && p.level == experiment::Level::advanced; });
    if (count > 0) {
      s.more = button("more", tr("Show %1 More").arg(count));
      s.more->setAccessibleName(tr("Advanced %1 settings").arg(qs(group)));
      add(experiment::Level::advanced, s.advanced);
    }
    column->addSpacing(8);
    sections_.push_back(std::move(s));
  }
  column->addStretch(1);
}

void Form::refresh() {
  for (Section& s : sections_) {
    for (FormRow* r : s.basic) r->refresh();
    for (FormRow* r : s.advanced) r->refresh();
  }
  arrange();
}

void Form::arrange() {
  const QString words = search_->text().trimmed();
  for (Section& s : sections_) {
    const bool open = s.header->isChecked();
    const bool unfolded = s.more && s.more->isChecked();
    bool any = false;
    const auto place = [&](FormRow* row, bool normally) {
      const bool shown = words.isEmpty() ? normally : row->matches(words);
      row->setVisible(shown);
      any |= shown;
    };
    for (FormRow* r : s.basic) place(r, open);
    // Rows that are set or invalid stay visible when their group is folded.
    for (FormRow* r : s.advanced) place(r, open && (unfolded || r->is_set() || r->has_problem()));
    s.header->setArrowType(open || !words.isEmpty() ? Qt::DownArrow : Qt::RightArrow);
    s.header->setVisible(words.isEmpty() || any);
    if (s.more) {
      const auto folded = std::count_if(s.advanced.begin(), s.advanced.end(),
                                        [](const FormRow* r) { return !r->is_set() && !r->has_problem(); });
      s.more->setVisible(words.isEmpty() && open && folded > 0);
      s.more->setArrowType(unfolded ? Qt::DownArrow : Qt::RightArrow);
      s.more->setText(unfolded ? tr("Show Fewer") : tr("Show %1 More").arg(folded));
    }
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
  // Scrolls after the layout is updated; before, positions are those of the folded form.
  QTimer::singleShot(0, target, [this, target] {
    scroll_->ensureWidgetVisible(target, 0, 40);
    target->field()->editor()->setFocus(Qt::OtherFocusReason);
  });
  return true;
}

}  // namespace mw::ui
