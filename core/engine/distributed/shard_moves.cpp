// SPDX-License-Identifier: Apache-2.0
// What moves between devices for weights and their gradients: each reads its peers' memory. Weights do not change
// during a step, so gathers need no meeting; sums of gradients have one before and one after.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/engine/distributed/shards.h"
#include "core/mesh/collectives/engine_step.h"

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

// The only ways to what another device stores or has summed. Each adds the bytes that it reads to `read`.

template <class T>
void copy_plain(const T* from, std::int64_t from_cols, T* to, std::int64_t to_cols, Size size, std::int64_t& read) {
  if (size.cols == from_cols && size.cols == to_cols) size = {1, size.rows * size.cols};
  const auto bytes = static_cast<size_t>(size.cols) * sizeof(T);
  for (std::int64_t r = 0; r < size.rows; ++r, read += static_cast<std::int64_t>(bytes))
    std::memcpy(to + r * to_cols, from + r * from_cols, bytes);
}

std::int64_t index_in(const Weight& w, std::int64_t row, std::int64_t col) {
  return w.at.packed ? packed_index(w.cols, row, col) : row * w.cols + col;
}

// bf16, in rows or in panels on either side. A run of whole panels is contiguous for any even columns.
void copy_bf16(const Weight& from, Place f, const Weight& to, Place t, Size size, std::int64_t& read) {
  constexpr std::int64_t kBytes = sizeof(std::uint16_t);
  if (!from.at.packed && !to.at.packed)
    return copy_plain(from.bf16 + f.row * from.cols + f.col, from.cols, to.bf16 + t.row * to.cols + t.col, to.cols,
                      size, read);
  const bool panels = from.at.packed && to.at.packed &&
                      (f.row % kPanelRows | t.row % kPanelRows | size.rows % kPanelRows) == 0 &&
                      (f.col % 2 | t.col % 2 | size.cols % 2) == 0;
  for (std::int64_t r = 0; panels && r < size.rows; r += kPanelRows, read += size.cols * kPanelRows * kBytes)
    std::memcpy(to.bf16 + index_in(to, t.row + r, t.col), from.bf16 + index_in(from, f.row + r, f.col),
                static_cast<size_t>(size.cols * kPanelRows * kBytes));
  for (std::int64_t r = 0; !panels && r < size.rows; ++r, read += size.cols * kBytes)
    for (std::int64_t c = 0; c < size.cols; ++c)
      to.bf16[index_in(to, t.row + r, t.col + c)] = from.bf16[index_in(from, f.row + r, f.col + c)];
}

// A part of what a peer stores to where Core reads it.
void copy_part(const VectorKernels& kernels, const Weight& from, Place f, const Weight& to, Place t, Size size,
               std::int64_t& read) {
  if (to.vector && from.bf16) {  // read as f32
    kernels.widen(size.cols, from.bf16 + f.col, to.norm + t.col);
    read += size.cols * static_cast<std::int64_t>(sizeof(std::uint16_t));
  } else if (to.vector) {
    copy_plain(from.norm + f.col, from.cols, to.norm + t.col, to.cols, size, read);
  } else if (to.bf16) {
    copy_bf16(from, f, to, t, size, read);
  } else {
    copy_plain(from.f32 + f.row * from.cols + f.col, from.cols, to.f32 + t.row * to.cols + t.col, to.cols, size, read);
  }
}

void add_values(const VectorKernels& kernels, const float* from, std::int64_t n, float* to, std::int64_t& read) {
  kernels.add(n, from, 1.0f, to);
  read += n * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace

void Shards::count(const Held& h, std::span<const mesh::Stage> stages, const Read& read, mesh::Phase phase,
                   Spent spent) {
  for (size_t i = 0; i < stages.size(); ++i) {
    if (read[i] == 0) continue;
    const mesh::Stage& s = stages[i];
    part_.port().count(s.kind, s.axis, s.group, {phase, s.cause, h.placed->layer, h.placed->name}, Bytes(read[i]),
                       spent.seconds, spent.waited);
    spent = {};
  }
}

void Shards::gather(size_t index, Read& read) {
  const Held& h = held_[index];
  read.assign(h.flow->gather_stages.size() + 1, 0);
  for (const Share& share : h.flow->sources[static_cast<size_t>(device_)]) {
    const Shards& peer = *peers_[static_cast<size_t>(share.device)];
    const Weight& from = peer.shard(peer.held_[index]);
    for (const Stretch& r : share.at.rows)
      for (const Stretch& c : share.at.cols)
        copy_part(core_->kernels, from, {r.from, c.from}, *h.used, {r.to, c.to}, {r.count, c.count}, read[share.stage]);
  }
}

void Shards::gather_weights(int part, mesh::Phase phase) {
  if (part == kHead) dirty_ = true;
  std::byte* at = working_.data();
  Read read;
  for (const size_t i : gathered_[index_of(part)]) {
    Held& h = held_[i];
    // Looking up has no backward that reads the table.
    if (phase == mesh::Phase::backward && mesh::block_of(h.placed->base) == mesh::Block::vocab) continue;
    const auto start = Clock::now();
    const std::int64_t bytes = place_used(h, at);
    if (h.used->rows > h.flow->working[static_cast<size_t>(device_)].height())
      std::memset(at, 0, static_cast<size_t>(bytes));
    at += bytes;
    gather(i, read);
    count(h, h.flow->gather_stages, read, phase, {since(start), 0});
  }
}

// The device's part of the stored gradient += the working gradients of all that have terms of it, in their order.
void Shards::add_terms(size_t index, Read& read) {
  Held& h = held_[index];
  read.assign(h.flow->sum_stages.size() + 1, 0);
  const std::vector<Replica>& sharers = h.flow->sharers[static_cast<size_t>(device_)];
  const auto own = std::find_if(sharers.begin(), sharers.end(), [&](const Replica& r) { return r.device == device_; });
  if (own == sharers.end()) return;
  const Region& region = stored(h);
  const mesh::Range mine =
      mesh::reduction_range(region.elements(), sharers.size(), static_cast<size_t>(own - sharers.begin()));
  const std::int64_t width = region.width();
  for (const Share& term : h.flow->terms[static_cast<size_t>(device_)]) {
    const Held& other = peers_[static_cast<size_t>(term.device)]->held_[index];
    const std::int64_t there = other.used->cols;
    const auto add = [&](const float* from, std::int64_t first, std::int64_t n) {  // to elements from `first` on
      const std::int64_t begin = std::max(first, mine.begin), end = std::min(first + n, mine.end);
      if (begin < end)
        add_values(core_->kernels, from + (begin - first), end - begin, h.gradient + begin, read[term.stage]);
    };
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

// What the others that share the sums have made.
void Shards::take_sums(size_t index, Read& read) {
  Held& h = held_[index];
  const std::vector<Replica>& sharers = h.flow->sharers[static_cast<size_t>(device_)];
  for (size_t i = 0; i < sharers.size(); ++i) {
    if (sharers[i].device == device_) continue;
    const mesh::Range theirs = mesh::reduction_range(stored(h).elements(), sharers.size(), i);
    const std::int64_t n = theirs.end - theirs.begin;
    copy_plain(peers_[static_cast<size_t>(sharers[i].device)]->held_[index].gradient + theirs.begin, n,
               h.gradient + theirs.begin, n, {1, n}, read[sharers[i].stage]);
  }
}

void Shards::reduce_gradients(int part) {
  const std::vector<size_t>& list = summed_[index_of(part)];
  if (!list.empty()) {
    std::vector<Read> reads(list.size());
    const auto start = Clock::now();
    part_.port().barrier();
    double waited = since(start);
    for (size_t i = 0; i < list.size(); ++i) add_terms(list[i], reads[i]);
    const auto summed = Clock::now();
    part_.port().barrier();
    waited += since(summed);
    for (size_t i = 0; i < list.size(); ++i) {
      take_sums(list[i], reads[i]);
      std::fill_n(held_[list[i]].partial, held_[list[i]].used->elements(), 0.0f);
    }
    // The devices meet once for all of them.
    const double each = 1.0 / static_cast<double>(list.size()), seconds = since(start);
    for (size_t i = 0; i < list.size(); ++i)
      count(held_[list[i]], held_[list[i]].flow->sum_stages, reads[i], mesh::Phase::backward,
            {seconds * each, waited * each});
  }
  if (part == (core_->full ? kEmbeddings : core_->lowest_trained_layer())) dirty_ = false;
}

}  // namespace mw::engine
