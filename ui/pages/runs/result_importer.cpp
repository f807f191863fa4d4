// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/runs/result_importer.h"

#include "core/import/import_files.h"
#include "ui/theme/text.h"

namespace mw::ui {

void ResultImporter::import(std::vector<std::filesystem::path> files) {
  thread_ = {};
  thread_ = std::jthread([this, files = std::move(files)](std::stop_token stop) {
    Result result;
    for (const auto& file : files) {
      if (stop.stop_requested()) break;
      try {
        for (auto& one : runs::import_files(folder_, {file})) result.runs.push_back(std::move(one.run));
      } catch (const Error& error) {
        result.problems.push_back(error.problem());
      } catch (const std::exception& error) {
        result.problems.push_back({.id = "INTERNAL", .message = error.what()});
      }
    }
    results_.push(std::move(result), Delivery::state);
  });
}

void ResultImporter::drain() {
  for (const Result& result : results_.drain().items) {
    for (const Problem& p : result.problems) emit problem(p);
    QStringList runs;
    for (const auto& run : result.runs) runs << qs(run);
    if (!runs.isEmpty()) emit imported(runs);
  }
}

}  // namespace mw::ui
