// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session/workspace.h"

#include "ui/session/action_registry.h"
#include "ui/session/replay_offer.h"
#include "ui/session/run_controller.h"

namespace mw::ui {

Page page_of(RunKind kind) {
  return kind == RunKind::train ? Page::train : Page::serve;
}

std::optional<NamedExperiment> WindowPage::provable_run() const {
  return {};
}

std::optional<ReplayOffer> WindowPage::replay_offer() const {
  return {};
}

QUndoStack* WindowPage::active_undo_stack(Document& document) {
  return &document.undo_stack();
}

std::function<void()> WindowPage::trigger(const QString& action) const {
  return [this, action] { workspace_->trigger(action); };
}

void Workspace::trigger(const QString& action) {
  actions()[action]->trigger();
}

void Workspace::show_kind(RunKind kind) {
  page_at(page_of(kind)).show_kind(kind);
  show_page(page_of(kind));
}

}  // namespace mw::ui
