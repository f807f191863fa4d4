// SPDX-License-Identifier: Apache-2.0
#include "core/engine/shard_map.h"

#include <algorithm>
#include <set>

namespace mw::engine {
namespace {

using mesh::Placed;
using mesh::Range;
using model::Axis;
using model::Role;

// The dimensions of a row in the files: what the matrix is multiplied along.
bool is_column(const Placed& p, Axis axis) {
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

std::vector<Stretch> common(const std::vector<Range>& from, const std::vector<Range>& to) {
  std::vector<Stretch> stretches;
  std::int64_t before_from = 0, before_to = 0;  // rows of earlier runs
  for (size_t f = 0, t = 0; f < from.size() && t < to.size();) {
    const std::int64_t begin = std::max(from[f].begin, to[t].begin), end = std::min(from[f].end, to[t].end);
    if (begin < end) {
      const Stretch stretch{before_from + begin - from[f].begin, before_to + begin - to[t].begin, end - begin};
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

std::int64_t size_of(const std::vector<Stretch>& stretches) {
  std::int64_t n = 0;
  for (const Stretch& s : stretches) n += s.count;
  return n;
}

}  // namespace

std::int64_t Region::height() const {
  return size_of(rows);
}
std::int64_t Region::width() const {
  return size_of(cols);
}
std::int64_t Overlap::elements() const {
  return size_of(rows) * size_of(cols);
}

Region stored_region(const Placed& p, const mesh::Mesh& mesh, int device) {
  const std::vector<Range> held = mesh::piece(p, mesh, device);
  Region region{{{0, 1}}, {{0, 1}}};
  for (size_t d = 0; d < p.dims.size(); ++d) {
    std::vector<Range>& runs = is_column(p, p.dims[d].axis) ? region.cols : region.rows;
    runs = refined(runs, p.dims[d].size, held[d]);
  }
  return region;
}

Region working_region(const mesh::LocalSlice& slice) {
  Region region;
  for (std::int64_t b = 0; b < slice.blocks; ++b)
    append(region.rows, {b * slice.block_rows + slice.rows.begin, b * slice.block_rows + slice.rows.end});
  append(region.cols, slice.cols);
  return region;
}

Overlap overlap(const Region& from, const Region& to) {
  return {common(from.rows, to.rows), common(from.cols, to.cols)};
}

std::vector<Share> sources(const Placed& tensor, const mesh::Mesh& mesh, const std::vector<Region>& stored,
                           const Region& working, int device) {
  std::vector<Share> shares;
  std::set<std::int64_t> found;
  const auto devices = static_cast<int>(stored.size());
  for (int i = 0; i < devices; ++i) {
    const int holder = (device + i) % devices;
    const std::int64_t piece = mesh::piece_index(tensor, mesh, holder);
    if (piece < 0 || !found.insert(piece).second) continue;
    Share share{holder, overlap(stored[static_cast<size_t>(holder)], working)};
    if (!share.at.empty()) shares.push_back(std::move(share));
  }
  return shares;
}

namespace {

using mesh::AxisSet;
using mesh::Cause;
using mesh::CollectiveKind;

// Axes along which devices have parts of the sum that the gradient is, or other parts of the tensor's working form.
AxisSet contributing(const Placed& p, const mesh::WorkingForm& form) {
  const bool router = p.base == Role::router_proj || p.base == Role::router_scale || p.base == Role::per_expert_scale;
  return form.batch() | (router ? 0 : form.parallel(p));
}

std::vector<Planned> planned_gathers(const Placed& p, const mesh::WorkingForm& form) {
  std::vector<Planned> list;
  const AxisSet axes = form.stored(p) & ~form.working(p);
  std::int64_t full = p.elements();
  for (int a = form.axes(); a-- > 0;) {  // inner axes first
    if (!(axes >> a & 1)) continue;
    full *= form.size(a);
    list.push_back({CollectiveKind::all_gather, a, form.size(a),
                    form.batch() >> a & 1 ? Cause::gather_shards : Cause::clumsy_spec, full});
  }
  return list;
}

std::vector<Planned> planned_sums(const Placed& p, const mesh::WorkingForm& form) {
  std::vector<Planned> list;
  const AxisSet stored = form.stored(p), gathered = stored & ~form.working(p);
  const AxisSet summed = contributing(p, form) & ~form.working(p);
  std::int64_t full = p.elements();
  for (int a = 0; a < form.axes(); ++a)
    if (gathered & summed & AxisSet{1} << a) full *= form.size(a);
  for (int a = 0; a < form.axes(); ++a) {
    if (!(gathered & summed & AxisSet{1} << a)) continue;
    list.push_back({CollectiveKind::reduce_scatter, a, form.size(a), Cause::gradients, full});
    full /= form.size(a);
  }
  for (int a = 0; a < form.axes(); ++a)
    if (summed & ~stored & AxisSet{1} << a)
      list.push_back({CollectiveKind::all_reduce, a, form.size(a), Cause::gradients, full});
  if (p.uneven != mesh::Uneven::repeated) return list;
  for (int a = 0; a < form.axes(); ++a) {  // devices with the same KV head
    if (!(form.working(p) >> a & 1)) continue;
    const auto same = static_cast<int>(form.size(a) / std::min<std::int64_t>(form.size(a), p.shards));
    if (same > 1) list.push_back({CollectiveKind::all_reduce, a, same, Cause::gradients, full});
  }
  return list;
}

std::string key_of(const Placed& p, const std::vector<Region>& working, const mesh::WorkingForm& form) {
  std::string key = std::to_string(static_cast<int>(p.role)) + " " + std::to_string(static_cast<int>(p.base)) + " " +
                    std::to_string(static_cast<int>(p.uneven)) + " " + std::to_string(form.parallel(p)) +
                    mesh::to_text(p.spec);
  for (const model::Dim& d : p.dims) key += " " + std::to_string(d.size);
  for (const Region& region : working) {
    for (const std::vector<Range>* runs : {&region.rows, &region.cols}) {
      key += ";";
      for (const Range& run : *runs) key += " " + std::to_string(run.begin) + "-" + std::to_string(run.end);
    }
  }
  return key;
}

// Devices that differ from this one along `axes` at most, ascending.
std::vector<int> group_of(const mesh::Mesh& mesh, int device, AxisSet axes) {
  const std::vector<int> own = mesh::coordinate(mesh, device);
  std::vector<int> group;
  for (int other = 0; other < mesh.devices(); ++other) {
    const std::vector<int> at = mesh::coordinate(mesh, other);
    bool same = true;
    for (size_t a = 0; a < own.size(); ++a) same = same && (axes >> a & 1 || at[a] == own[a]);
    if (same) group.push_back(other);
  }
  return group;
}

}  // namespace

std::shared_ptr<const Flow> Flows::of(const Placed& p, const std::vector<mesh::LocalSlice>& slices) {
  Flow flow;
  for (const mesh::LocalSlice& slice : slices) flow.working.push_back(working_region(slice));
  std::shared_ptr<const Flow>& known = known_[key_of(p, flow.working, form_)];
  if (known) return known;
  flow.rows = slices.front().blocks * slices.front().block_rows, flow.cols = slices.front().columns;
  const int devices = mesh_.devices();
  std::set<std::int64_t> seen;
  for (int d = 0; d < devices; ++d) {
    flow.stored.push_back(stored_region(p, mesh_, d));
    const std::int64_t piece = mesh::piece_index(p, mesh_, d);
    flow.counts.push_back(piece >= 0 && seen.insert(piece).second);
  }
  flow.direct = flow.stored == flow.working;
  const AxisSet axes = contributing(p, form_);
  for (int d = 0; d < devices; ++d) {
    const auto at = static_cast<size_t>(d);
    flow.sources.push_back(flow.direct ? std::vector<Share>{} : sources(p, mesh_, flow.stored, flow.working[at], d));
    std::vector<Share>& terms = flow.terms.emplace_back();
    std::vector<int>& replicas = flow.replicas.emplace_back();
    const std::int64_t piece = mesh::piece_index(p, mesh_, d);
    for (const int other : group_of(mesh_, d, axes)) {
      Share term{other, overlap(flow.working[static_cast<size_t>(other)], flow.stored[at])};
      if (!term.at.empty()) terms.push_back(std::move(term));
      if (piece >= 0 && mesh::piece_index(p, mesh_, other) == piece) replicas.push_back(other);
    }
    flow.sums = flow.sums || !flow.direct || terms.size() > 1;
  }
  flow.gathers = planned_gathers(p, form_);
  flow.sums_planned = planned_sums(p, form_);
  return known = std::make_shared<const Flow>(std::move(flow));
}

}  // namespace mw::engine
