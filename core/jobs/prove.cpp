// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/prove.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <tuple>

#include "core/base/counted.h"
#include "core/base/units.h"
#include "core/jobs/out_of_memory.h"
#include "core/plan/document/engine_request.h"
#include "core/plan/prediction/memory.h"
#include "core/present/table.h"
#include "core/train/settings.h"

namespace mw::jobs {
namespace {

constexpr double kMemoryShare = 0.02;

std::vector<MemoryComparison> compare_memory(const train::Settings& settings, const train::MeshComparison& proof) {
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

namespace {

using train::TensorComparison;
using train::TrafficComparison;

std::string power(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", v);
  return text;
}

std::string name_of(const TensorComparison& t) {
  return t.part + (t.tensor.empty() ? "" : " of " + t.tensor) +
         (t.step > 0 ? ", step " + std::to_string(t.step) : ", before the first step");
}

std::string name_of(const TrafficComparison& t) {
  return mesh::to_string(t.what.kind) + " of " + t.what.tensor + " over " + t.what.axis + " (" +
         mesh::to_string(t.what.phase) + "), device " + std::to_string(t.device) + ", step " + std::to_string(t.step);
}

double share_of(const TensorComparison& t) {
  if (t.difference <= 0) return 0;
  return t.bound > 0 ? t.difference / t.bound : std::numeric_limits<double>::infinity();
}

Json to_json(const TensorComparison& t) {
  return {{"step", t.step},
          {"part", t.part},
          {"tensor", t.tensor},
          {"difference", or_null(t.difference)},
          {"bound", or_null(t.bound)},
          {"magnitude", or_null(t.magnitude)},
          {"holds", t.holds()}};
}

Json to_json(const TrafficComparison& t) {
  return {{"step", t.step},
          {"device", t.device},
          {"kind", mesh::to_string(t.what.kind)},
          {"axis", t.what.axis},
          {"phase", mesh::to_string(t.what.phase)},
          {"cause", mesh::to_string(t.what.cause)},
          {"tensor", t.what.tensor},
          {"planned_bytes", t.planned.value},
          {"counted_bytes", t.counted.value},
          {"holds", t.holds()}};
}

// One line per part and step, with the tensor whose difference is closest to its bound.
std::string tensor_lines(const train::MeshComparison& proof) {
  present::Table table =
      present::left_table({"step", "compared", "tensors", "largest difference", "allowed there", "of", "tensor", ""});
  for (size_t i = 0; i < proof.tensors.size();) {
    // The parts of one tensor are adjacent, so each part is counted over the whole step.
    const TensorComparison& first = proof.tensors[i];
    std::vector<std::string> parts;
    size_t end = i;
    for (; end < proof.tensors.size() && proof.tensors[end].step == first.step; ++end)
      if (std::find(parts.begin(), parts.end(), proof.tensors[end].part) == parts.end())
        parts.push_back(proof.tensors[end].part);
    for (const std::string& part : parts) {
      const TensorComparison* worst = nullptr;
      int count = 0, broken = 0;
      for (size_t k = i; k < end; ++k) {
        const TensorComparison& t = proof.tensors[k];
        if (t.part != part) continue;
        ++count;
        broken += !t.holds();
        if (!worst || share_of(t) > share_of(*worst)) worst = &t;
      }
      table.add({first.step > 0 ? std::to_string(first.step) : "start", part, std::to_string(count),
                 power(worst->difference), power(worst->bound), power(worst->magnitude), worst->tensor,
                 broken > 0 ? "BROKEN in " + std::to_string(broken) : std::string()});
    }
    i = end;
  }
  return present::to_text(table, 2);
}

std::string traffic_lines(const train::MeshComparison& proof) {
  struct Sum {
    Bytes planned, counted;
    std::int64_t entries = 0, broken = 0;
  };
  std::map<std::tuple<std::string, mesh::Phase, mesh::CollectiveKind, mesh::Cause>, Sum> sums;
  for (const TrafficComparison& t : proof.traffic) {
    Sum& sum = sums[{t.what.axis, t.what.phase, t.what.kind, t.what.cause}];
    sum.planned += t.planned;
    sum.counted += t.counted;
    ++sum.entries;
    sum.broken += !t.holds();
  }
  present::Table table = present::left_table({"axis", "collective", "compared", "planned", "counted", "cause", ""});
  for (const auto& [key, sum] : sums) {
    const auto& [axis, phase, kind, cause] = key;
    table.add({axis, mesh::to_string(kind) + ", " + mesh::to_string(phase), std::to_string(sum.entries),
               to_text(sum.planned), to_text(sum.counted), mesh::to_string(cause),
               sum.broken > 0 ? "BROKEN in " + std::to_string(sum.broken) : std::string()});
  }
  return present::to_text(table, 2);
}

std::string memory_lines(const MeshProof& p) {
  std::map<MemoryCategory, std::pair<const MemoryComparison*, int>> worst;
  const auto off = [](const MemoryComparison& m) {
    return std::abs(static_cast<double>(m.predicted.value - m.measured.value)) /
           static_cast<double>(std::max<std::int64_t>(1, m.measured.value));
  };
  for (const MemoryComparison& m : p.memory) {
    auto& [at, broken] = worst[m.category];
    broken += !m.holds();
    if (!at || off(m) > off(*at)) at = &m;
  }
  present::Table table = present::left_table({"memory", "predicted", "measured", "device", ""});
  for (const auto& [category, entry] : worst)
    table.add({std::string(to_string(category)), to_text(entry.first->predicted), to_text(entry.first->measured),
               std::to_string(entry.first->device),
               entry.second > 0 ? "BROKEN on " + std::to_string(entry.second) : std::string()});
  return present::to_text(table, 2);
}

}  // namespace

std::string MeshProof::broken() const {
  if (const TensorComparison* t = proof.first_broken_tensor())
    return name_of(*t) + ": differs by " + power(t->difference) + " where " + power(t->bound) + " is allowed";
  if (const TrafficComparison* t = proof.first_broken_traffic())
    return name_of(*t) + ": " + std::to_string(t->counted.value) + " bytes counted, " +
           std::to_string(t->planned.value) + " planned";
  for (const MemoryComparison& m : memory)
    if (!m.holds())
      return std::string(to_string(m.category)) + " on device " + std::to_string(m.device) + ": " +
             to_text(m.measured) + " measured, " + to_text(m.predicted) + " predicted";
  return {};
}

Json to_json(const MeshProof& p) {
  Json tensors = Json::array(), traffic = Json::array(), memory = Json::array();
  for (const TensorComparison& t : p.proof.tensors) tensors.push_back(to_json(t));
  for (const TrafficComparison& t : p.proof.traffic) traffic.push_back(to_json(t));
  for (const MemoryComparison& m : p.memory)
    memory.push_back({{"device", m.device},
                      {"category", to_string(m.category)},
                      {"predicted_bytes", m.predicted.value},
                      {"measured_bytes", m.measured.value},
                      {"holds", m.holds()}});
  return {{"verdict", p.holds() ? "pass" : "fail"},
          {"broken", p.broken()},
          {"mesh", mesh::to_text(p.proof.mesh)},
          {"devices", p.proof.mesh.devices()},
          {"steps", p.proof.steps},
          {"parameters", p.proof.parameters},
          {"trained", p.proof.trained},
          {"planned_bytes", p.proof.planned().value},
          {"counted_bytes", p.proof.counted().value},
          {"seconds_unsharded", p.proof.seconds_unsharded},
          {"seconds_mesh", p.proof.seconds_mesh},
          {"tensors", std::move(tensors)},
          {"traffic", std::move(traffic)},
          {"memory", std::move(memory)}};
}

std::string to_text(const MeshProof& p) {
  const train::MeshComparison& proof = p.proof;
  std::string text = "mesh " + mesh::to_text(proof.mesh) + " against one device: " + counted(proof.steps, "step") +
                     " from the same weights, data and seed\n";
  text += tensor_lines(proof) + traffic_lines(proof) + memory_lines(p);
  text += "sent by all devices: " + std::to_string(proof.counted().value) + " bytes counted, " +
          std::to_string(proof.planned().value) + " planned\n";
  text += p.holds() ? "proved: the mesh computes what one device computes\n" : "NOT PROVED: " + p.broken() + "\n";
  return text;
}

}  // namespace mw::jobs
