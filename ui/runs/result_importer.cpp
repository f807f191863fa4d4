// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/result_importer.h"

#include "core/formats/logs/run_log.h"
#include "core/runs/import_log.h"
#include "core/runs/import_results.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

// A training log of another program, or results of a serving benchmark; read whole before the store is touched.
std::vector<runs::RunId> import_one(const std::filesystem::path& file, const std::filesystem::path& folder) {
  if (formats::log_kind(file) != formats::LogKind::none) {
    const formats::RunLog log = formats::read_log(file);
    runs::Store store(folder);
    return {runs::import_log(store, log)};
  }
  runs::Store store(folder);
  return runs::import_results(store, file);
}

}  // namespace

void ResultImporter::import(std::vector<std::filesystem::path> files) {
  thread_ = {};
  thread_ = std::jthread([this, files = std::move(files)](std::stop_token stop) {
    Result result;
    for (const auto& file : files) {
      if (stop.stop_requested()) break;
      try {
        for (auto& run : import_one(file, folder_)) result.runs.push_back(std::move(run));
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
