// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/settings_row.h"

#include <algorithm>

namespace mw::ui {
namespace {
constexpr const char* kServer = "sweep.url";
constexpr int kCellWidth = 64;  // in pixels; below it captions are cut
}  // namespace

SettingsRow::SettingsRow(Document& document, const std::vector<Setting>& settings, QWidget* parent)
    : QWidget(parent), document_(document) {
  auto* rows = make_layout<QVBoxLayout>(this, {2, 0, 2, 0}, 3);
  for (QHBoxLayout** row : {&upper_, &lower_}) {
    *row = new QHBoxLayout;
    (*row)->setSpacing(6);
    rows->addLayout(*row);
  }
  for (const Setting& setting : settings) add(setting);
  connect(&document_, &Document::changed, this, &SettingsRow::refresh);
  refresh();
}

void SettingsRow::add(const Setting& setting) {
  auto* cell = new QWidget(this);
  auto* column = flush_layout<QVBoxLayout>(cell, 1);
  auto* label = new ElidedLabel(Qt::ElideRight, cell);
  label->setText(setting.caption);
  label->setFont(small_font());
  label->setProperty("muted", true);
  FormField* field = make_field(*experiment::find_parameter(setting.key), cell);
  field->set_compact();
  field->editor()->setMinimumWidth(36);
  label->setBuddy(field->editor());
  column->addWidget(label);
  column->addWidget(field);
  upper_->addWidget(cell, setting.stretch);
  field->edit(document_);
  cells_.push_back({field, label, setting.stretch});
}

void SettingsRow::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  arrange();
}

// The second half of the settings is in the lower row where one row is too narrow for all.
void SettingsRow::arrange() {
  const auto shown = std::ranges::count_if(cells_, [](const Cell& c) { return !c.field->parentWidget()->isHidden(); });
  const bool narrow = width() < kCellWidth * shown;
  if (narrow == (lower_->count() > 0)) return;
  long place = 0;
  for (const Cell& c : cells_) {
    QWidget* cell = c.field->parentWidget();
    if (!cell->isHidden()) ++place;
    const bool below = narrow && place > (shown + 1) / 2;
    QHBoxLayout *from = below ? upper_ : lower_, *to = below ? lower_ : upper_;
    if (from->indexOf(cell) < 0) continue;
    from->removeWidget(cell);
    to->addWidget(cell, c.stretch);
  }
}

FormField* SettingsRow::field(const std::string& key) {
  for (const Cell& c : cells_)
    if (c.field->key() == key) return c.field;
  return nullptr;
}

// A problem with a value colours its caption; the tooltip and the Problems list describe it.
void SettingsRow::refresh() {
  for (const Cell& c : cells_) {
    const std::string& key = c.field->key();
    c.field->show_value(raw_value(document_.experiment(), key));
    QString wrong;
    for (const Problem& p : document_.problems())
      if (p.place.starts_with(key) && p.severity != Severity::info) wrong = qs(to_text(p));
    c.caption->setToolTip(wrong.isEmpty() ? describe(c.field->parameter()) : wrong);
    set_style_property(*c.caption, "bad", !wrong.isEmpty());
    set_style_property(*c.caption, "muted", wrong.isEmpty());
  }
  const Json* backend = raw_value(document_.experiment(), "sweep.backend");
  if (FormField* server = field(kServer)) server->parentWidget()->setVisible(backend && *backend == "http");
}

}  // namespace mw::ui

#include "moc_settings_row.cpp"
