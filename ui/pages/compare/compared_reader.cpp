// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/compared_reader.h"

#include "core/compare/compared_files.h"

namespace mw::ui {
namespace {

hardware::Catalogue catalogue_in(const ComparedReader::Folders& folders) {
  return hardware::Catalogue::load(folders.hardware, folders.own_hardware);
}

}  // namespace

void ComparedReader::start(Work work) {
  ++pending_;
  threads_.emplace_back([this, work = std::move(work), number = asked_++] {
    Result result;
    result.number = number;
    try {
      result.runs = work();
      result.good = true;
    } catch (const Error& error) {
      result.problem = error.problem();
    } catch (const std::exception& error) {
      result.problem = {.id = "INTERNAL", .message = error.what()};
    }
    results_.push(std::move(result), Delivery::state);
  });
}

void ComparedReader::read_run(const runs::RunId& run) {
  start([folders = folders_, run] {
    const runs::Store store(folders.runs);
    std::vector<runs::Compared> out;
    out.push_back(runs::compared(store, run));
    if (auto& sweep = out.back().sweep) sweep->findings = runs::audit_known(sweep->set, catalogue_in(folders));
    return out;
  });
}

void ComparedReader::read_file(const std::filesystem::path& file) {
  start([folders = folders_, file] { return runs::compared_files(file, catalogue_in(folders)); });
}

void ComparedReader::drain() {
  auto results = results_.drain().items;
  if (results.empty()) return;
  for (Result& result : results) {
    const std::uint64_t number = result.number;
    early_.emplace(number, std::move(result));
  }
  for (auto next = early_.find(told_); next != early_.end(); next = early_.find(++told_)) {
    Result result = std::move(early_.extract(next).mapped());
    --pending_;
    if (result.good)
      emit read(result.runs);
    else
      emit problem(result.problem);
  }
  if (pending_ == 0) threads_.clear();  // all have left their results
  emit settled();
}

}  // namespace mw::ui
