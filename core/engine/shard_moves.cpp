// SPDX-License-Identifier: Apache-2.0
// What moves between devices for weights and their gradients: each reads its peers' memory. Weights do not change
// during a step, so gathers need no meeting; sums of gradients have one before and one after.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/engine/shards.h"

namespace mw::engine {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Place {
  std::int64_t row, col;
};
struct Size {
  std::int64_t rows, cols;
};

template <class T>
void copy_plain(const T* from, std::int64_t from_cols, T* to, std::int64_t to_cols, Size size) {
  if (size.cols == from_cols && size.cols == to_cols) size = {1, size.rows * size.cols};
  for (std::int64_t r = 0; r < size.rows; ++r)
    std::memcpy(to + r * to_cols, from + r * from_cols, static_cast<size_t>(size.cols) * sizeof(T));
}

std::int64_t index_in(const Weight& w, std::int64_t row, std::int64_t col) {
  return w.at.packed ? packed_index(w.cols, row, col) : row * w.cols + col;
}

// bf16, in rows or in panels on either side. A run of whole panels is contiguous for any even columns.
void copy_bf16(const Weight& from, Place f, const Weight& to, Place t, Size size) {
  if (!from.at.packed && !to.at.packed)
    return copy_plain(from.bf16 + f.row * from.cols + f.col, from.cols, to.bf16 + t.row * to.cols + t.col, to.cols,
                      size);
  const bool panels = from.at.packed && to.at.packed &&
                      (f.row % kPanelRows | t.row % kPanelRows | size.rows % kPanelRows) == 0 &&
                      (f.col % 2 | t.col % 2 | size.cols % 2) == 0;
  for (std::int64_t r = 0; panels && r < size.rows; r += kPanelRows)
    std::memcpy(to.bf16 + index_in(to, t.row + r, t.col), from.bf16 + index_in(from, f.row + r, f.col),
                static_cast<size_t>(size.cols * kPanelRows) * sizeof(std::uint16_t));
  for (std::int64_t r = 0; !panels && r < size.rows; ++r)
    for (std::int64_t c = 0; c < size.cols; ++c)
      to.bf16[index_in(to, t.row + r, t.col + c)] = from.bf16[index_in(from, f.row + r, f.col + c)];
}

// A part of what a peer stores to where Core reads it.
void copy_part(const VectorKernels& kernels, const Weight& from, Place f, const Weight& to, Place t, Size size) {
  if (to.vector) {  // read as f32
    if (from.bf16)
      kernels.widen(size.cols, from.bf16 + f.col, to.norm + t.col);
    else
      std::copy_n(from.norm + f.col, size.cols, to.norm + t.col);
  } else if (to.bf16) {
    copy_bf16(from, f, to, t, size);
  } else {
    copy_plain(from.f32 + f.row * from.cols + f.col, from.cols, to.f32 + t.row * to.cols + t.col, to.cols, size);
  }
}

// Elements [begin, end) of a shard that one of its replicas sums.
struct Span {
  std::int64_t begin, end;
};
Span span_of(std::int64_t elements, size_t replicas, size_t replica) {
  constexpr std::int64_t kLine = 16;  // floats of a cache line: no two devices write the same
  const auto lines = (elements + kLine - 1) / kLine, n = static_cast<std::int64_t>(replicas);
  const auto edge = [&](std::int64_t r) { return std::min(elements, lines * r / n * kLine); };
  return {edge(static_cast<std::int64_t>(replica)), edge(static_cast<std::int64_t>(replica) + 1)};
}

}  // namespace

void Shards::count(const Held& h, std::span<const Planned> what, mesh::Phase phase, std::int64_t element_bytes,
                   double seconds, double waited) {
  for (const Planned& p : what) {
    part_.port.count(p.kind, p.axis, {phase, p.cause, h.placed->layer, h.placed->name}, Bytes(p.full * element_bytes),
                     seconds, p.group, waited);
    seconds = waited = 0;
  }
}

void Shards::gather(size_t index) {
  const Held& h = held_[index];
  for (const Share& share : h.flow->sources[static_cast<size_t>(device_)]) {
    const Shards& peer = *peers_[static_cast<size_t>(share.device)];
    const Weight& from = peer.shard(peer.held_[index]);
    for (const Stretch& r : share.at.rows)
      for (const Stretch& c : share.at.cols)
        copy_part(core_->kernels, from, {r.from, c.from}, *h.used, {r.to, c.to}, {r.count, c.count});
  }
}

void Shards::enter(int part, mesh::Phase phase) {
  if (part == kHead) dirty_ = true;
  std::byte* at = working_.data();
  for (const size_t i : gathered_[index_of(part)]) {
    Held& h = held_[i];
    // Looking up has no backward that reads the table.
    if (phase == mesh::Phase::backward && mesh::block_of(h.placed->base) == mesh::Block::vocab) continue;
    const auto start = Clock::now();
    const std::int64_t bytes = place_used(h, at);
    if (h.used->rows > h.flow->working[static_cast<size_t>(device_)].height())
      std::memset(at, 0, static_cast<size_t>(bytes));
    at += bytes;
    gather(i);
    count(h, h.flow->gathers, phase, h.value_at ? 4 : core_->type == WeightType::bf16 ? 2 : 4, since(start), 0);
  }
}

// The device's part of the stored gradient += the working gradients of all that have terms of it, in their order.
void Shards::add_terms(size_t index) {
  Held& h = held_[index];
  const std::vector<int>& replicas = h.flow->replicas[static_cast<size_t>(device_)];
  const Region& region = stored(h);
  const auto own = std::find(replicas.begin(), replicas.end(), device_);
  if (own == replicas.end()) return;
  const Span mine = span_of(region.elements(), replicas.size(), static_cast<size_t>(own - replicas.begin()));
  const std::int64_t width = region.width();
  const auto add = [&](const float* from, std::int64_t first, std::int64_t n) {  // to elements from `first` on
    const std::int64_t begin = std::max(first, mine.begin), end = std::min(first + n, mine.end);
    if (begin < end) core_->kernels.add(end - begin, from + (begin - first), 1.0f, h.gradient + begin);
  };
  for (const Share& term : h.flow->terms[static_cast<size_t>(device_)]) {
    if (index == left_out_ && term.device != device_) continue;
    const Held& other = peers_[static_cast<size_t>(term.device)]->held_[index];
    const std::int64_t there = other.used->cols;
    for (const Stretch& r : term.at.rows)
      for (const Stretch& c : term.at.cols) {
        if (c.count == width && c.count == there) {
          add(other.partial + r.from * there, r.to * width, r.count * width);
          continue;
        }
        for (std::int64_t i = 0; i < r.count; ++i)
          add(other.partial + (r.from + i) * there + c.from, (r.to + i) * width + c.to, c.count);
      }
  }
}

// What the other holders of the same shard have summed.
void Shards::take_sums(size_t index) {
  Held& h = held_[index];
  const std::vector<int>& replicas = h.flow->replicas[static_cast<size_t>(device_)];
  for (size_t r = 0; r < replicas.size(); ++r) {
    if (replicas[r] == device_) continue;
    const Span theirs = span_of(stored(h).elements(), replicas.size(), r);
    std::copy(peers_[static_cast<size_t>(replicas[r])]->held_[index].gradient + theirs.begin,
              peers_[static_cast<size_t>(replicas[r])]->held_[index].gradient + theirs.end, h.gradient + theirs.begin);
  }
}

void Shards::leave(int part) {
  const std::vector<size_t>& list = summed_[index_of(part)];
  if (!list.empty()) {
    const auto start = Clock::now();
    part_.port.barrier();
    double waited = since(start);
    for (const size_t i : list) add_terms(i);
    const auto summed = Clock::now();
    part_.port.barrier();
    waited += since(summed);
    for (const size_t i : list) {
      take_sums(i);
      std::fill_n(held_[i].partial, held_[i].used->elements(), 0.0f);
    }
    // The devices meet once for all of them.
    const double each = 1.0 / static_cast<double>(list.size()), seconds = since(start);
    for (const size_t i : list)
      count(held_[i], held_[i].flow->sums_planned, mesh::Phase::backward, 4, seconds * each, waited * each);
  }
  if (part == (core_->full ? kEmbeddings : core_->lowest_trained_layer())) dirty_ = false;
}

}  // namespace mw::engine
