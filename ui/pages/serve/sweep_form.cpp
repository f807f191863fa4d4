// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/sweep_form.h"

#include <QHBoxLayout>
#include <QLabel>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {
constexpr const char* kServer = "sweep.url";
}

SweepForm::SweepForm(Document& document, QWidget* parent) : QWidget(parent), document_(document) {
  make_layout<QHBoxLayout>(this, {2, 0, 2, 0}, 6);
  add("sweep.backend", tr("Backend"), 3);
  add(kServer, tr("Server"), 6);
  add("sweep.request_rates", tr("Rates, requests/s"), 8);
  add("sweep.input_lens", tr("Prompts, tokens"), 6);
  add("sweep.output_len", tr("Output, tokens"), 3);
  add("sweep.num_prompts", tr("Requests"), 3);
  add("sweep.arrival", tr("Arrival"), 3);
  add("sweep.slo_ttft_ms", tr("SLO TTFT, ms"), 3);
  add("sweep.slo_tpot_ms", tr("TPOT, ms"), 3);
  add("sweep.slo_e2e_ms", tr("E2E, ms"), 3);
  connect(&document_, &Document::changed, this, &SweepForm::refresh);
  refresh();
}

void SweepForm::add(const std::string& key, const QString& caption, int stretch) {
  auto* cell = new QWidget(this);
  auto* column = flush_layout<QVBoxLayout>(cell, 1);
  auto* label = new QLabel(caption, cell);
  label->setFont(small_font());
  label->setProperty("muted", true);
  Field* field = make_field(*experiment::find_parameter(key), cell);
  field->set_compact();
  field->editor()->setMinimumWidth(44);
  label->setBuddy(field->editor());
  column->addWidget(label);
  column->addWidget(field);
  static_cast<QHBoxLayout*>(layout())->addWidget(cell, stretch);
  field->edit(document_);
  cells_.push_back({field, label});
}

Field* SweepForm::field(const std::string& key) {
  for (const Cell& c : cells_)
    if (c.field->key() == key) return c.field;
  return nullptr;
}

// A problem with a value colours its caption; the tooltip and the Problems list describe it.
void SweepForm::refresh() {
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
  field(kServer)->parentWidget()->setVisible(backend && *backend == "http");
}

}  // namespace mw::ui
