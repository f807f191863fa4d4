// SPDX-License-Identifier: Apache-2.0
#include "core/engine/distributed/reshard_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <tuple>

namespace mw::engine {
namespace {

using mesh::PlacedTensor;
using mesh::Range;
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
    default:
      return axis == Axis::embed;
  }
}

std::int64_t size_of(const std::vector<Range>& runs) {
  std::int64_t n = 0;
  for (const Range& r : runs) n += r.end - r.begin;
  return n;
}

void append(std::vector<Range>& runs, const Range& run) {
  if (run.begin >= run.end) return;
  if (!runs.empty() && runs.back().end == run.begin)
    runs.back().end = run.end;
  else
    runs.push_back(run);
}

// The runs of one more dimension inside those of the outer ones.
std::vector<Range> refined(const std::vector<Range>& outer, std::int64_t size, const Range& part) {
  std::vector<Range> runs;
  for (const Range& o : outer) {
    if (part.begin == 0 && part.end == size) {
      append(runs, {o.begin * size, o.end * size});
      continue;
    }
    for (std::int64_t i = o.begin; i < o.end; ++i) append(runs, {i * size + part.begin, i * size + part.end});
  }
  return runs;
}

std::vector<IndexRange> common(const std::vector<Range>& from, const std::vector<Range>& to) {
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

IndexRegion stored_region(const PlacedTensor& p, const mesh::Mesh& mesh, int device) {
  const std::vector<Range> held = mesh::piece(p, mesh, device);
  IndexRegion region{{{0, 1}}, {{0, 1}}};
  for (size_t d = 0; d < p.dims.size(); ++d) {
    std::vector<Range>& runs = is_column(p, p.dims[d].axis) ? region.cols : region.rows;
    runs = refined(runs, p.dims[d].size, held[d]);
  }
  return region;
}

IndexRegion working_region(const mesh::LocalSlice& slice) {
  IndexRegion region;
  for (std::int64_t b = 0; b < slice.blocks; ++b)
    append(region.rows, {b * slice.block_rows + slice.rows.begin, b * slice.block_rows + slice.rows.end});
  append(region.cols, slice.cols);
  return region;
}

RegionOverlap overlap(const IndexRegion& from, const IndexRegion& to) {
  return {common(from.rows, to.rows), common(from.cols, to.cols)};
}

std::vector<CopySource> sources(const PlacedTensor& tensor, const mesh::Mesh& mesh, std::span<const mesh::Stage> stages,
                                const std::vector<IndexRegion>& stored, const IndexRegion& working, int device) {
  struct Holder {
    int device;
    size_t stage;
    long axes_apart;
  };
  const std::vector<int> own = mesh::coordinate(mesh, device);
  std::map<std::int64_t, Holder> nearest;  // by piece
  const auto devices = static_cast<int>(stored.size());
  for (int i = 0; i < devices; ++i) {
    const int other = (device + i) % devices;
    const std::int64_t piece = mesh::piece_index(tensor, mesh, other);
    if (piece < 0) continue;
    const std::vector<int> at = mesh::coordinate(mesh, other);
    const long apart = std::inner_product(own.begin(), own.end(), at.begin(), 0L, std::plus<>(), std::not_equal_to<>());
    const Holder holder{other, mesh::stage_of(stages, own, at), apart};
    const auto [known, fresh] = nearest.try_emplace(piece, holder);
    Holder& best = known->second;
    if (!fresh && std::tuple(best.stage, -best.axes_apart) < std::tuple(holder.stage, -holder.axes_apart))
      best = holder;
  }
  std::vector<CopySource> shares;
  for (const auto& [piece, holder] : nearest) {
    CopySource share{holder.device, holder.stage, overlap(stored[static_cast<size_t>(holder.device)], working)};
    if (!share.at.empty()) shares.push_back(std::move(share));
  }
  return shares;
}

namespace {

std::string key_of(const PlacedTensor& p, const std::vector<IndexRegion>& working, const mesh::ComputeSharding& form) {
  std::string key = std::to_string(static_cast<int>(p.role)) + " " + std::to_string(static_cast<int>(p.base)) + " " +
                    std::to_string(static_cast<int>(p.uneven)) + " " + std::to_string(form.parallel(p)) +
                    mesh::to_text(p.spec);
  for (const model::Dim& d : p.dims) key += " " + std::to_string(d.size);
  for (const IndexRegion& region : working) {
    for (const std::vector<Range>* runs : {&region.rows, &region.cols}) {
      key += ";";
      for (const Range& run : *runs) key += " " + std::to_string(run.begin) + "-" + std::to_string(run.end);
    }
  }
  return key;
}

// Elements of the device's stored gradient from every device that has some, and who shares the work: all that store the
// same, where every term is of all of it.
void find_gradient_terms(ReshardPlan& plan, const PlacedTensor& p, const mesh::Mesh& mesh,
                         const mesh::ComputeSharding& form, int device) {
  const IndexRegion& stored = plan.stored[static_cast<size_t>(device)];
  const std::int64_t piece = mesh::piece_index(p, mesh, device);
  const std::vector<int> own = mesh::coordinate(mesh, device);
  std::vector<CopySource>& terms = plan.terms.emplace_back();
  std::vector<Replica>& replicas = plan.replicas.emplace_back();
  if (piece < 0) return;
  std::vector<Replica> same;
  bool whole = true;
  for (const int other : mesh::group_of(mesh, device, mesh::contributing(p, form))) {
    const size_t stage = mesh::stage_of(plan.sum_stages, own, mesh::coordinate(mesh, other));
    if (mesh::piece_index(p, mesh, other) == piece) same.push_back({other, stage});
    CopySource term{other, stage, overlap(plan.working[static_cast<size_t>(other)], stored)};
    if (term.at.empty()) continue;
    whole = whole && term.at.elements() == stored.elements();
    terms.push_back(std::move(term));
  }
  replicas = whole ? same : std::vector<Replica>{{device, plan.sum_stages.size()}};
}

}  // namespace

std::shared_ptr<const ReshardPlan> ReshardPlans::of(const PlacedTensor& p,
                                                    const std::vector<mesh::LocalSlice>& slices) {
  ReshardPlan plan;
  for (const mesh::LocalSlice& slice : slices) plan.working.push_back(working_region(slice));
  std::shared_ptr<const ReshardPlan>& known = known_[key_of(p, plan.working, form_)];
  if (known) return known;
  plan.rows = slices.front().blocks * slices.front().block_rows, plan.cols = slices.front().columns;
  const int devices = mesh_.devices();
  std::set<std::int64_t> seen;
  for (int d = 0; d < devices; ++d) {
    plan.stored.push_back(stored_region(p, mesh_, d));
    const std::int64_t piece = mesh::piece_index(p, mesh_, d);
    plan.counts.push_back(piece >= 0 && seen.insert(piece).second);
  }
  plan.direct = plan.stored == plan.working;
  plan.gather_stages = mesh::gather_stages(p, form_);
  plan.sum_stages = mesh::sum_stages(p, form_);
  for (int d = 0; d < devices; ++d) {
    plan.sources.push_back(
        plan.direct ? std::vector<CopySource>{}
                    : sources(p, mesh_, plan.gather_stages, plan.stored, plan.working[static_cast<size_t>(d)], d));
    find_gradient_terms(plan, p, mesh_, form_, d);
    plan.sums = plan.sums || !plan.direct || plan.terms.back().size() > 1;
  }
  return known = std::make_shared<const ReshardPlan>(std::move(plan));
}

}  // namespace mw::engine
