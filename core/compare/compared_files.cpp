// SPDX-License-Identifier: Apache-2.0
#include "core/compare/compared_files.h"

#include "core/formats/results/bench_import.h"
#include "core/model/catalogue.h"

namespace mw::compare {
namespace {

double bytes_of(const formats::BenchSet& set, const char* condition) {
  const std::string type = set.condition(condition);
  return type.find("fp8") != std::string::npos || type.find("int8") != std::string::npos ? 1 : 2;
}

}  // namespace

std::vector<serve::Finding> audit_known(const formats::BenchSet& set, const hardware::Catalogue& catalogue) {
  if (!set.model.empty() && !set.target.empty() && set.target != "cpu") try {
      return serve::audit(set, {.model = model::catalogue_config(set.model),
                                .target = catalogue.target(set.target),
                                .weight_bytes = bytes_of(set, "weight_dtype"),
                                .kv_bytes = bytes_of(set, "kv_dtype")});
    } catch (const Error&) {  // the catalogue does not have the model or chip
    }
  return serve::audit(set);
}

std::vector<ComparedRun> compared_files(const std::filesystem::path& file, const hardware::Catalogue& catalogue) {
  std::vector<ComparedRun> out;
  for (formats::BenchSet& set : formats::read_bench(file)) {
    ComparedRun column = compared(std::move(set));
    column.sweep->findings = audit_known(column.sweep->set, catalogue);
    out.push_back(std::move(column));
  }
  return out;
}

}  // namespace mw::compare
