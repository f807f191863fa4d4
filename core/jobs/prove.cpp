// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/prove.h"

#include <algorithm>
#include <cmath>

#include "core/jobs/out_of_memory.h"
#include "core/plan/document/engine_request.h"
#include "core/plan/memory/engine_memory.h"
#include "core/train/run_settings.h"

namespace mw::jobs {
namespace {

constexpr double kMemoryShare = 0.02;

std::vector<MemoryComparison> compare_memory(const train::Settings& settings, const train::MeshProof& proof) {
  plan::Request request = plan::engine_request(settings, proof.facts.config);
  plan::set_rows(proof.facts, "its steps", request);
  const plan::DeviceMemory predicted = plan::engine_memory(request);
  std::vector<MemoryComparison> all;
  for (size_t d = 0; d < proof.memory.size(); ++d)
    for (const MemoryCategory category : all_values<MemoryCategory>()) {
      const Bytes expected = predicted.devices.at(d).category_peaks[category];
      const Bytes measured = proof.memory[d].category_peaks[category];
      if (expected.value == 0 && measured.value == 0) continue;
      all.push_back({static_cast<int>(d), category, expected, measured});
    }
  return all;
}

}  // namespace

bool MemoryComparison::holds() const {
  const auto off = static_cast<double>(std::abs(predicted.value - measured.value));
  return off <= kMemoryShare * static_cast<double>(measured.value);
}

bool MeshProof::holds() const {
  return proof.holds() && std::all_of(memory.begin(), memory.end(), [](const auto& m) { return m.holds(); });
}

MeshProof prove(const experiment::Experiment& experiment, const ProveOptions& options, std::stop_token stop) {
  train::Settings settings = train::train_settings(experiment.config());
  const long steps = std::max(1L, std::min(options.steps, settings.rate.steps));
  try {
    MeshProof out;
    out.proof = train::prove(
        {.settings = settings, .steps = steps, .progress = options.progress, .on_mesh = options.on_mesh}, stop);
    out.memory = compare_memory(settings, out.proof);
    return out;
  } catch (const engine::OutOfMemory& failure) {
    throw report_of(failure, experiment, nullptr, stop).error;
  }
}

}  // namespace mw::jobs
