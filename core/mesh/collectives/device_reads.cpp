// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/collectives/device_reads.h"

#include <algorithm>
#include <optional>

#include "core/mesh/collectives/engine_step.h"

namespace mw::mesh {
namespace {

// The elements that both ranges have.
std::int64_t common(const std::vector<Range>& a, const std::vector<Range>& b) {
  std::int64_t n = 1;
  for (size_t d = 0; d < a.size(); ++d)
    n *= std::max<std::int64_t>(0, std::min(a[d].end, b[d].end) - std::max(a[d].begin, b[d].begin));
  return n;
}

std::vector<Stage> with_reads(std::vector<Stage> stages, const std::vector<std::int64_t>& reads) {
  std::vector<Stage> out;
  for (size_t i = 0; i < stages.size(); ++i) {
    if (reads[i] == 0) continue;
    stages[i].moved = reads[i];
    if (stages[i].full == 0) stages[i].full = reads[i];
    out.push_back(stages[i]);
  }
  return out;
}

}  // namespace

// The reads of a tensor; shared by tensors of the same role, size and spec in layers with the same split.
struct DeviceReads::TensorReads {
  std::vector<std::vector<Range>> stored, working;  // by device
  std::vector<std::int64_t> piece;                  // by device; -1: none
  std::vector<Stage> gather_stages, sum_stages;
  AxisSet gathered = 0, contributing = 0;
  std::vector<std::optional<std::vector<Stage>>> gathers, sums;  // by device, computed on demand
};

DeviceReads::~DeviceReads() = default;
DeviceReads::DeviceReads(const model::Config& config, const ComputeSharding& form, const Placement& placement,
                         const Mesh& mesh)
    : form_(form), mesh_(mesh) {
  for (int d = 0; d < mesh.devices(); ++d) {
    at_.push_back(coordinate(mesh, d));
    locals_.push_back(local_config(config, form, placement, mesh, d));
  }
  const auto alike = [&](size_t a, size_t b) {
    return std::all_of(locals_.begin(), locals_.end(), [&](const LocalConfig& local) {
      const LocalLayer &x = local.layers[a], &y = local.layers[b];
      return x.heads == y.heads && x.kv_heads == y.kv_heads && x.mlp == y.mlp;
    });
  };
  for (size_t layer = 0; layer < config.layers.size(); ++layer) {
    int first = 0;
    while (same_as_.size() > static_cast<size_t>(first) &&
           (same_as_[static_cast<size_t>(first)] != first || !alike(static_cast<size_t>(first), layer)))
      ++first;
    same_as_.push_back(first);
  }
}

DeviceReads::TensorReads& DeviceReads::lay_of(const PlacedTensor& tensor) const {
  std::string key = to_text(tensor.spec);
  for (const int part :
       {static_cast<int>(tensor.role), static_cast<int>(tensor.base), static_cast<int>(tensor.uneven),
        static_cast<int>(form_.parallel(tensor)), tensor.layer < 0 ? -1 : same_as_[static_cast<size_t>(tensor.layer)]})
    key += " " + std::to_string(part);
  for (const model::Dim& d : tensor.dims) key += " " + std::to_string(d.size);
  std::unique_ptr<TensorReads>& known = reads_[key];
  if (known) return *known;
  known = std::make_unique<TensorReads>();
  TensorReads& lay = *known;
  for (int d = 0; d < mesh_.devices(); ++d) {
    lay.stored.push_back(piece(tensor, mesh_, d));
    lay.working.push_back(working_piece(locals_[static_cast<size_t>(d)], tensor));
    lay.piece.push_back(piece_index(tensor, mesh_, d));
  }
  lay.gather_stages = gather_stages(tensor, form_);
  lay.sum_stages = sum_stages(tensor, form_);
  lay.gathered = form_.stored(tensor) & ~form_.working(tensor);
  lay.contributing = contributing(tensor, form_);
  lay.gathers.resize(lay.stored.size());
  lay.sums.resize(lay.stored.size());
  return lay;
}

size_t DeviceReads::stage(const std::vector<Stage>& stages, int own, int other) const {
  return stage_of(stages, at_[static_cast<size_t>(own)], at_[static_cast<size_t>(other)]);
}

const std::vector<Stage>& DeviceReads::gather(const PlacedTensor& tensor, int device) const {
  TensorReads& lay = lay_of(tensor);
  std::optional<std::vector<Stage>>& known = lay.gathers[static_cast<size_t>(device)];
  if (!known) known = with_reads(lay.gather_stages, gathered(lay, device));
  return *known;
}

std::vector<std::int64_t> DeviceReads::gathered(const TensorReads& lay, int device) const {
  std::vector<std::int64_t> reads(lay.gather_stages.size() + 1);
  if (lay.gathered == 0) return reads;
  struct Holder {
    size_t stage;
    std::int64_t elements;
  };
  std::map<std::int64_t, Holder> nearest;  // of each piece the holder whose stage comes last
  for (int other = 0; other < mesh_.devices(); ++other) {
    const auto i = static_cast<size_t>(other);
    if (lay.piece[i] < 0) continue;
    const size_t at = stage(lay.gather_stages, device, other);
    const auto [known, fresh] = nearest.try_emplace(lay.piece[i], Holder{at, 0});
    if (fresh) known->second.elements = common(lay.stored[i], lay.working[static_cast<size_t>(device)]);
    known->second.stage = std::max(known->second.stage, at);
  }
  for (const auto& [index, holder] : nearest) reads[holder.stage] += holder.elements;
  return reads;
}

const std::vector<Stage>& DeviceReads::sum(const PlacedTensor& tensor, int device) const {
  TensorReads& lay = lay_of(tensor);
  std::optional<std::vector<Stage>>& known = lay.sums[static_cast<size_t>(device)];
  if (!known) known = with_reads(lay.sum_stages, summed(lay, device));
  return *known;
}

std::vector<std::int64_t> DeviceReads::summed(const TensorReads& lay, int device) const {
  std::vector<std::int64_t> reads(lay.sum_stages.size() + 1);
  const std::int64_t own = lay.piece[static_cast<size_t>(device)];
  if (lay.contributing == 0 || own < 0) return reads;
  const std::vector<Range>& stored = lay.stored[static_cast<size_t>(device)];
  const std::int64_t elements = common(stored, stored);
  struct Term {
    size_t stage;
    std::int64_t elements;
  };
  std::vector<Term> terms;
  std::vector<int> same;  // devices with the same piece
  for (const int other : group_of(mesh_, device, lay.contributing)) {
    const auto i = static_cast<size_t>(other);
    if (lay.piece[i] == own) same.push_back(other);
    if (const std::int64_t n = common(lay.working[i], stored); n > 0)
      terms.push_back({stage(lay.sum_stages, device, other), n});
  }
  if (!std::all_of(terms.begin(), terms.end(), [&](const Term& t) { return t.elements == elements; })) {
    for (const Term& t : terms) reads[t.stage] += t.elements;
    return reads;
  }
  for (size_t i = 0; i < same.size(); ++i) {
    const Range part = reduction_range(elements, same.size(), i);
    if (same[i] == device) {
      for (const Term& t : terms) reads[t.stage] += part.end - part.begin;
    } else {
      reads[stage(lay.sum_stages, device, same[i])] += part.end - part.begin;
    }
  }
  return reads;
}

}  // namespace mw::mesh
