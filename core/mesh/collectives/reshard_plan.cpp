// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/collectives/reshard_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/mesh/collectives/engine_step.h"

namespace mw::mesh {
namespace {

using model::Axis;
using model::Role;

// The dimensions of a row in the files: what the matrix is multiplied along.
bool is_column(const PlacedTensor& p, Axis axis) {
  if (p.dims.size() == 1) return true;
  switch (p.role) {
    case Role::o_proj:
    case Role::down_proj:
    case Role::experts_down:
    case Role::ple_proj:
      return axis != Axis::embed && axis != Axis::experts;
    case Role::ple_embed:
      return axis == Axis::ple;
    case Role::lora_a:
      return axis != Axis::rank;
    case Role::lora_b:
      return axis == Axis::rank;
    case Role::lora_m:
      return true;
    default:
      return axis == Axis::embed;
  }
}

std::int64_t size_of(const std::vector<IndexInterval>& runs) {
  std::int64_t n = 0;
  for (const IndexInterval& r : runs) n += r.end - r.begin;
  return n;
}

void append(std::vector<IndexInterval>& runs, const IndexInterval& run) {
  if (run.begin >= run.end) return;
  if (!runs.empty() && runs.back().end == run.begin)
    runs.back().end = run.end;
  else
    runs.push_back(run);
}

// The runs of one more dimension inside those of the outer ones.
std::vector<IndexInterval> refined(const std::vector<IndexInterval>& outer, std::int64_t size,
                                   const IndexInterval& part) {
  std::vector<IndexInterval> runs;
  for (const IndexInterval& o : outer) {
    if (part.begin == 0 && part.end == size) {
      append(runs, {o.begin * size, o.end * size});
      continue;
    }
    for (std::int64_t i = o.begin; i < o.end; ++i) append(runs, {i * size + part.begin, i * size + part.end});
  }
  return runs;
}

std::vector<IndexRange> common(const std::vector<IndexInterval>& from, const std::vector<IndexInterval>& to) {
  std::vector<IndexRange> stretches;
  std::int64_t before_from = 0, before_to = 0;  // rows of earlier runs
  for (size_t f = 0, t = 0; f < from.size() && t < to.size();) {
    const std::int64_t begin = std::max(from[f].begin, to[t].begin), end = std::min(from[f].end, to[t].end);
    if (begin < end) {
      const IndexRange stretch{before_from + begin - from[f].begin, before_to + begin - to[t].begin, end - begin};
      if (!stretches.empty() && stretches.back().from + stretches.back().count == stretch.from &&
          stretches.back().to + stretches.back().count == stretch.to)
        stretches.back().count += stretch.count;
      else
        stretches.push_back(stretch);
    }
    if (from[f].end <= to[t].end)
      before_from += from[f].end - from[f].begin, ++f;
    else
      before_to += to[t].end - to[t].begin, ++t;
  }
  return stretches;
}

std::int64_t size_of(const std::vector<IndexRange>& stretches) {
  std::int64_t n = 0;
  for (const IndexRange& s : stretches) n += s.count;
  return n;
}

RegionOverlap overlap(const IndexRegion& from, const IndexRegion& to) {
  return {common(from.rows, to.rows), common(from.cols, to.cols)};
}

// The stages in which something is read; the last of `reads` is what a device has itself.
std::vector<Stage> with_reads(std::vector<Stage> stages, const std::vector<std::int64_t>& reads) {
  for (size_t i = 0; i < stages.size(); ++i) {
    stages[i].moved = reads[i];
    if (stages[i].full == 0) stages[i].full = reads[i];
  }
  std::erase_if(stages, [](const Stage& stage) { return stage.moved == 0; });
  return stages;
}

}  // namespace

std::int64_t IndexRegion::height() const {
  return size_of(rows);
}
std::int64_t IndexRegion::width() const {
  return size_of(cols);
}
std::int64_t RegionOverlap::elements() const {
  return size_of(rows) * size_of(cols);
}

IndexRegion region_of(const PlacedTensor& tensor, const std::vector<IndexInterval>& ranges) {
  IndexRegion region{{{0, 1}}, {{0, 1}}};
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    std::vector<IndexInterval>& runs = is_column(tensor, tensor.dims[d].axis) ? region.cols : region.rows;
    runs = refined(runs, tensor.dims[d].size, ranges[d]);
  }
  return region;
}

ReshardPlan::ReshardPlan(const PlacedTensor& tensor, const ComputeSharding& form, const Mesh& on_mesh,
                         std::vector<IndexRegion> used)
    : mesh(on_mesh),
      cols(1),
      working(std::move(used)),
      gather_stages(mesh::gather_stages(tensor, form)),
      sum_stages(mesh::sum_stages(tensor, form)),
      summed(contributing(tensor, form)),
      copies_(working.size()) {
  for (const model::Dim& d : tensor.dims) cols *= is_column(tensor, d.axis) ? d.size : 1;
  for (int device = 0; device < static_cast<int>(working.size()); ++device) {
    stored.push_back(region_of(tensor, piece(tensor, mesh, device)));
    pieces.push_back(piece_index(tensor, mesh, device));
  }
  direct = stored == working;
  DeviceCopies first;  // if the gradient of any device is a sum, then that of the first, which always has a piece
  find_gradient_terms(0, first);
  sums = !direct || first.terms.size() > 1;
}

const DeviceCopies& ReshardPlan::copies(int device) const {
  std::optional<DeviceCopies>& known = copies_[static_cast<size_t>(device)];
  if (known) return *known;
  known.emplace();
  if (!direct) known->sources = sources(device);
  find_gradient_terms(device, *known);
  return *known;
}

std::vector<CopySource> ReshardPlan::sources(int device) const {
  struct Holder {
    int device;
    size_t stage;
    long axes_apart;
  };
  const std::vector<int> own = coordinate(mesh, device);
  std::map<std::int64_t, Holder> nearest;  // by piece
  const auto devices = static_cast<int>(stored.size());
  for (int i = 0; i < devices; ++i) {
    const int other = (device + i) % devices;
    const std::int64_t piece = pieces[static_cast<size_t>(other)];
    if (piece < 0) continue;
    const std::vector<int> at = coordinate(mesh, other);
    const long apart = std::inner_product(own.begin(), own.end(), at.begin(), 0L, std::plus<>(), std::not_equal_to<>());
    const Holder holder{other, stage_of(gather_stages, own, at), apart};
    const auto [known, fresh] = nearest.try_emplace(piece, holder);
    Holder& best = known->second;
    if (!fresh && std::tuple(best.stage, -best.axes_apart) < std::tuple(holder.stage, -holder.axes_apart))
      best = holder;
  }
  std::vector<CopySource> found;
  for (const auto& [piece, holder] : nearest) {
    CopySource source{holder.device, holder.stage,
                      overlap(stored[static_cast<size_t>(holder.device)], working[static_cast<size_t>(device)])};
    if (!source.at.empty()) found.push_back(std::move(source));
  }
  return found;
}

void ReshardPlan::find_gradient_terms(int device, DeviceCopies& out) const {
  const IndexRegion& own = stored[static_cast<size_t>(device)];
  const std::int64_t piece = pieces[static_cast<size_t>(device)];
  if (piece < 0) return;
  const std::vector<int> at = coordinate(mesh, device);
  bool whole = true;  // every term is of all of it
  for (const int other : group_of(mesh, device, summed)) {
    const size_t stage = stage_of(sum_stages, at, coordinate(mesh, other));
    if (pieces[static_cast<size_t>(other)] == piece) out.replicas.push_back({other, stage});
    CopySource term{other, stage, overlap(working[static_cast<size_t>(other)], own)};
    if (term.at.empty()) continue;
    whole = whole && term.at.elements() == own.elements();
    out.terms.push_back(std::move(term));
  }
  if (!whole) out.replicas = {{device, sum_stages.size()}};
}

std::vector<Stage> ReshardPlan::gather_reads(int device) const {
  std::vector<std::int64_t> reads(gather_stages.size() + 1);
  for (const CopySource& source : copies(device).sources) reads[source.stage] += source.at.elements();
  return with_reads(gather_stages, reads);
}

std::vector<Stage> ReshardPlan::sum_reads(int device) const {
  std::vector<std::int64_t> reads(sum_stages.size() + 1);
  const DeviceCopies& own = copies(device);
  const std::int64_t elements = stored[static_cast<size_t>(device)].elements();
  for (size_t i = 0; i < own.replicas.size(); ++i) {
    const IndexInterval part = reduction_range(elements, own.replicas.size(), i);
    if (own.replicas[i].device != device) {
      reads[own.replicas[i].stage] += part.end - part.begin;
      continue;
    }
    for (const CopySource& term : own.terms)  // with replicas every term is of all elements
      reads[term.stage] += own.replicas.size() > 1 ? part.end - part.begin : term.at.elements();
  }
  return with_reads(sum_stages, reads);
}

bool ReshardPlan::counts(int device) const {
  const std::int64_t own = pieces[static_cast<size_t>(device)];
  return own >= 0 && std::find(pieces.begin(), pieces.end(), own) - pieces.begin() == device;
}

ReshardPlans::ReshardPlans(const model::Config& config, const Placement& placement, const Mesh& mesh)
    : placement_(placement), mesh_(mesh), form_(mesh, placement, engine_step({})) {
  for (int device = 0; device < mesh.devices(); ++device)
    locals_.push_back(local_config(config, form_, placement, mesh, device));
  for (size_t layer = 0; layer < config.layers.size(); ++layer) {
    const auto alike = [&](size_t other) {
      return std::all_of(locals_.begin(), locals_.end(),
                         [&](const LocalConfig& local) { return local.layers[other] == local.layers[layer]; });
    };
    int first = 0;
    while (!alike(static_cast<size_t>(first))) ++first;
    same_as_.push_back(first);
  }
}

const ReshardPlan& ReshardPlans::of(const PlacedTensor& tensor) const {
  std::string key = to_text(tensor.spec);
  for (const int part :
       {static_cast<int>(tensor.role), static_cast<int>(tensor.base), static_cast<int>(tensor.uneven),
        static_cast<int>(form_.parallel(tensor)), tensor.layer < 0 ? -1 : same_as_[static_cast<size_t>(tensor.layer)]})
    key += " " + std::to_string(part);
  for (const model::Dim& d : tensor.dims) key += " " + std::to_string(d.size);
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  std::vector<IndexRegion> working;
  for (const LocalConfig& local : locals_) working.push_back(region_of(tensor, working_piece(local, tensor)));
  return known_.try_emplace(std::move(key), tensor, form_, mesh_, std::move(working)).first->second;
}

}  // namespace mw::mesh
