// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/replayer.h"

#include <algorithm>

#include "ui/session/run_controller.h"
#include "ui/theme/text.h"

namespace mw::ui {

Replayer::Replayer(std::filesystem::path runs_folder, hardware::LoadCatalogue catalogue)
    : runs_folder_(std::move(runs_folder)), catalogue_(std::move(catalogue)) {}

void Replayer::start(runs::Recording recording, runs::Experiment server) {
  if (busy()) return;
  percent_ = 0;
  said_.drain();
  thread_ =
      std::jthread([this, recording = std::move(recording), server = std::move(server)](const std::stop_token& stop) {
        yield_to_the_window();
        said_.push(work(recording, server, stop), Delivery::state);
      });
  emit changed();
}

Replayer::Said Replayer::work(const runs::Recording& recording, const runs::Experiment& server,
                              const std::stop_token& stop) {
  Said end{.percent = 100, .last = true};
  try {
    int told = 0;
    formats::BenchSet predicted = runs::replay(
        recording, server, catalogue_(),
        [&](long done, long of) {
          const int percent = static_cast<int>(100 * done / std::max(1L, of));
          if (percent > told) said_.push({.percent = told = percent}, Delivery::telemetry);
        },
        stop);
    runs::Store store(runs_folder_);
    end.run = runs::record_replay(store, server, std::move(predicted));
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::cancelled) end.problem = error.problem();
  } catch (const std::exception& error) {
    end.problem = Problem{.id = "REPLAY", .message = error.what()};
  }
  return end;
}

void Replayer::cancel() {
  if (!busy() || cancelling()) return;
  thread_.request_stop();
  emit changed();
}

void Replayer::drain() {
  for (const Said& said : said_.drain().items) {
    percent_ = said.percent;
    if (said.last) thread_ = {};
    emit changed();
    if (said.problem) emit failed(*said.problem);
    if (!said.run.empty()) emit replayed(qs(said.run));
  }
}

}  // namespace mw::ui
