// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/narrator.h"

#include "core/base/units.h"

namespace mw::app {

void Narrator::tell(const Event& event) {
  view_.feed(event);
  if (const auto* m = std::get_if<event::Metric>(&event.body)) metric(*m);
  if (const auto* p = std::get_if<event::Progress>(&event.body)) progress(*p);
  if (const auto* l = std::get_if<event::Log>(&event.body))
    line_.message((l->level == "info" ? "" : l->level + ": ") + l->text);
  if (const auto* c = std::get_if<event::Checkpoint>(&event.body))
    line_.message("checkpoint of step " + std::to_string(c->step) + ": " + c->path);
  if (const auto* s = std::get_if<event::Started>(&event.body))
    line_.message("started " + s->info.value("run", std::string()));
}

void Narrator::metric(const event::Metric& m) {
  if (m.name == "train/loss") loss_ = m.value;
  if (m.name == "train/tokens_per_second") speed_ = m.value;
  if (m.name == "eval/loss") line_.message("step " + std::to_string(m.step) + ": eval/loss " + number_text(m.value));
}

void Narrator::progress(const event::Progress& p) {
  if (!view_.activity()) return line_.clear();
  std::string text = p.phase;
  if (p.total > 0) text += " " + std::to_string(p.done) + "/" + std::to_string(p.total);
  if (p.phase == "training") {
    text += "  loss " + number_text(loss_) + "  " + count_text(speed_) + " tokens/s";
    if (const auto eta = view_.eta_seconds()) text += "  ETA " + to_text(Seconds(*eta));
  }
  line_.update(text);
}

}  // namespace mw::app
