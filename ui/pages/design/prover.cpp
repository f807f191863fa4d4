// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/prover.h"

#include "ui/session/run_controller.h"

namespace mw::ui {

Prover::Prover(Prove prove, QObject* parent) : QObject(parent), prove_(std::move(prove)) {}

Prover::~Prover() {
  thread_ = {};
}

void Prover::start(const runs::Experiment& experiment) {
  if (busy()) return;
  progress_ = {};
  proof_.reset();
  failed_.reset();
  cancelled_ = false;
  said_.drain();
  clock_.start();
  thread_ = std::jthread([this, experiment](const std::stop_token& stop) {
    yield_to_the_window();
    Said end{.last = true};
    try {
      end.proof = std::make_shared<const runs::ProofView>(prove_(
          experiment, [this](const event::Progress& p) { said_.push({.progress = p}, Delivery::telemetry); }, stop));
    } catch (const Error& error) {
      end.cancelled = error.kind() == Error::Kind::cancelled;
      if (!end.cancelled) end.failed = error.problem();
    } catch (const std::exception& error) {
      end.failed = Problem{.id = "PROOF", .message = error.what()};
    }
    said_.push(std::move(end), Delivery::state);
  });
  emit changed();
}

void Prover::stop() {
  if (!busy() || stopping()) return;
  thread_.request_stop();
  emit changed();
}

void Prover::drain() {
  if (!busy()) return;
  const auto items = said_.drain().items;
  for (const Said& said : items) take(said);
  if (!items.empty()) emit changed();
}

void Prover::take(const Said& said) {
  if (said.progress) progress_ = *said.progress;
  if (!said.last) return;
  thread_.join();
  thread_ = {};
  proof_ = said.proof;
  failed_ = said.failed;
  cancelled_ = said.cancelled;
}

std::optional<double> Prover::eta_seconds() const {
  if (!busy() || progress_.done <= 0 || progress_.total <= progress_.done) return std::nullopt;
  return seconds() * static_cast<double>(progress_.total - progress_.done) / static_cast<double>(progress_.done);
}

}  // namespace mw::ui
