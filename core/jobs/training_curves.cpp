// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/training_curves.h"

#include <chrono>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/formats/logs/tensorboard.h"

namespace mw::jobs {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The first step that the run makes: a resumed one repeats those after its checkpoint.
long first_step(const event::Started& started) {
  const Json* resumed = find_member(started.info, "resumed_from");
  return resumed && resumed->is_number_integer() ? resumed->get<long>() + 1 : 0;
}

}  // namespace

TrainingCurves::TrainingCurves(std::filesystem::path folder) : folder_(std::move(folder)) {}
TrainingCurves::~TrainingCurves() = default;

std::optional<Event> TrainingCurves::feed(const Event& event) {
  if (folder_.empty()) return std::nullopt;
  try {
    write(event);
    return std::nullopt;
  } catch (const Error& error) {
    folder_.clear();
    writer_.reset();
    return Event{event.time_s,
                 event::Log{"warning", "no more TensorBoard files are written: " + std::string(error.what())}};
  }
}

void TrainingCurves::write(const Event& event) {
  if (const auto* started = std::get_if<event::Started>(&event.body)) {
    make_folders(folder_);
    const double now = seconds_since_1970();
    writer_ =
        std::make_unique<formats::TensorboardWriter>(formats::new_event_file(folder_, now), now, first_step(*started));
  }
  if (const auto* metric = std::get_if<event::Metric>(&event.body); metric && writer_)
    writer_->add_scalar(metric->name, metric->step, metric->value, seconds_since_1970());
}

}  // namespace mw::jobs
