// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/train/recipe_exporter.h"

#include "core/jobs/recipe_export.h"
#include "ui/theme/text.h"
#include "ui/train/run_controller.h"

namespace mw::ui {

template <class Work>
void RecipeExporter::begin(Work work) {
  thread_ = {};  // stops and joins
  said_.drain();
  thread_ = std::jthread([this, job = ++job_, work = std::move(work)](const std::stop_token& stop) {
    yield_to_the_window();
    Said said{.job = job};
    try {
      work(said, stop);
    } catch (const Error& error) {
      said.problem = error.problem();
    } catch (const std::exception& error) {
      said.problem = Problem{.id = "INTERNAL", .message = error.what()};
    }
    if (!stop.stop_requested()) said_.push(std::move(said), Delivery::state);
  });
  emit changed();
}

void RecipeExporter::look(recipes::Kind kind, const runs::Experiment& experiment) {
  look_.reset();
  begin([this, kind, experiment](Said& said, const std::stop_token& stop) {
    auto look =
        std::make_shared<Look>(Look{runs::recipe_subject(kind, experiment, catalogue_(), templates_, stop), {}});
    for (recipes::File& file : recipes::recipe_files(look->subject, templates_)) look->files.push_back(std::move(file.path));
    if (recipes::is_training(kind) && look->subject.rows) look->files.emplace_back("data/rows.safetensors");
    if (recipes::is_training(kind) && !look->subject.adapter.empty()) look->files.emplace_back("adapter/");
    said.look = std::move(look);
  });
}

void RecipeExporter::write(const std::filesystem::path& folder, recipes::Overwrite overwrite) {
  if (!look_) return;
  begin([this, look = look_, folder, overwrite](Said& said, const std::stop_token&) {
    said.look = look;
    said.files = static_cast<int>(recipes::write_recipe(look->subject, templates_, folder, overwrite).size());
    said.folder = folder;
  });
}

void RecipeExporter::drain() {
  for (const Said& said : said_.drain().items) {
    if (said.job != job_) continue;
    thread_ = {};
    if (said.look) look_ = said.look;
    emit changed();
    if (said.problem) emit failed(*said.problem);
    if (said.files > 0) emit written(qpath(said.folder), said.files);
  }
}

}  // namespace mw::ui
