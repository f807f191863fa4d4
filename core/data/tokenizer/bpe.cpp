// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenizer/bpe.h"

#include <atomic>
#include <limits>

#include "core/base/text.h"

namespace mw::data {

void Bpe::characters(std::string_view segment, std::vector<int>& out) const {
  bool after_unknown = false;
  for (size_t i = 0; i < segment.size();) {
    const size_t valid = character_length(segment.substr(i));
    const std::string_view character = segment.substr(i, std::max<size_t>(valid, 1));
    i += character.size();
    if (const int id = valid > 0 ? ids.find(character) : -1; id >= 0) {
      out.push_back(id);
      after_unknown = false;
      continue;
    }
    const auto byte_id = [&](char c) { return byte_ids[static_cast<unsigned char>(c)]; };
    if (std::all_of(character.begin(), character.end(), [&](char c) { return byte_id(c) >= 0; })) {
      for (const char c : character) out.push_back(byte_id(c));
      after_unknown = false;
    } else if (unknown >= 0) {
      if (!after_unknown || unknowns == Unknowns::keep_each) out.push_back(unknown);
      after_unknown = true;
    }
  }
}

namespace {

constexpr size_t kFew = 32;  // symbols up to which looking at all pairs is faster than a heap

struct Candidate {
  std::uint64_t order;  // rank << 32 | position: lowest rank first, leftmost on ties
  int left, right;      // symbols at that position when it was added; stale if they have changed
  bool operator>(const Candidate& o) const { return order > o.order; }
};

}  // namespace

void Bpe::merge(std::vector<int>& symbols) const {
  const int n = static_cast<int>(symbols.size());
  std::vector<int> previous(symbols.size()), following(symbols.size());
  std::vector<Candidate> heap;
  const auto candidate = [&](int at, int next) -> bool {
    const Merge* m = merges.find(pair_key(symbols[static_cast<size_t>(at)], symbols[static_cast<size_t>(next)]));
    if (!m) return false;
    heap.push_back({pair_key(m->rank, at), symbols[static_cast<size_t>(at)], symbols[static_cast<size_t>(next)]});
    return true;
  };
  for (int i = 0; i < n; ++i) {
    previous[static_cast<size_t>(i)] = i - 1;
    following[static_cast<size_t>(i)] = i + 1;
    if (i + 1 < n) candidate(i, i + 1);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const Candidate best = heap.back();
    heap.pop_back();
    const int at = static_cast<int>(best.order & 0xffffffffu);
    const int next = following[static_cast<size_t>(at)];
    if (symbols[static_cast<size_t>(at)] != best.left || next >= n || symbols[static_cast<size_t>(next)] != best.right)
      continue;
    symbols[static_cast<size_t>(at)] = merges.find(pair_key(best.left, best.right))->id;
    symbols[static_cast<size_t>(next)] = -1;
    const int after = following[static_cast<size_t>(next)], before = previous[static_cast<size_t>(at)];
    following[static_cast<size_t>(at)] = after;
    if (after < n) previous[static_cast<size_t>(after)] = at;
    if (before >= 0 && candidate(before, at)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
    if (after < n && candidate(at, after)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
  std::erase(symbols, -1);
}

// Makes the merges of merge() among the symbols from `first` on, at most kFew, without a heap.
void Bpe::merge_few(std::vector<int>& symbols, size_t first) const {
  constexpr Merge kNone{.rank = std::numeric_limits<int>::max(), .id = -1};
  std::array<Merge, kFew> of;  // the merge of each symbol with the next one
  int* const s = symbols.data() + first;
  size_t n = symbols.size() - first;
  const auto look_up = [&](size_t i) {
    const Merge* m = i + 1 < n ? merges.find(pair_key(s[i], s[i + 1])) : nullptr;
    of[i] = m ? *m : kNone;
  };
  for (size_t i = 0; i < n; ++i) look_up(i);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i)
      if (of[i].rank < of[best].rank) best = i;
    if (of[best].id < 0) break;
    s[best] = of[best].id;
    std::copy(s + best + 2, s + n, s + best + 1);
    std::copy(of.begin() + static_cast<std::ptrdiff_t>(best) + 2, of.begin() + static_cast<std::ptrdiff_t>(n),
              of.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    --n;
    look_up(best);
    if (best > 0) look_up(best - 1);
  }
  symbols.resize(first + n);
}

void Bpe::encode_part(std::string_view part, std::vector<int>& out) const {
  const size_t first = out.size();
  characters(part, out);
  if (out.size() - first <= kFew) return merge_few(out, first);
  std::vector<int> symbols(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
  merge(symbols);
  out.resize(first);
  out.insert(out.end(), symbols.begin(), symbols.end());
}

void Bpe::encode(std::string_view segment, std::vector<int>& out) const {
  if (segment.empty()) return;
  if (whole == WholeSegment::look_up_first) {
    if (const int id = ids.find(segment); id >= 0) {
      out.push_back(id);
      return;
    }
  }
  if (owner_ == 0) return encode_part(segment, out);
  thread_local WordCache words;
  for (size_t begin = 0, end = 0; begin < segment.size(); begin = end) {
    for (end = begin + 1; end < segment.size() && !junctions.can_cut(segment, end); ++end) {
    }
    const std::string_view word = segment.substr(begin, end - begin);
    if (word.size() > WordCache::kMostBytes) {
      encode_part(word, out);
      continue;
    }
    if (const std::span<const int> known = words.find(owner_, word); !known.empty()) {
      out.insert(out.end(), known.begin(), known.end());
      continue;
    }
    const size_t first = out.size();
    encode_part(word, out);
    words.keep(owner_, word, std::span(out).subspan(first));
  }
}

// Symbols of bytes and of unknown characters have other text than their piece, and a run of unknown characters is one
// symbol.
void Bpe::allow_cuts() {
  static std::atomic<std::uint32_t> owners{0};
  FlatMap<bool> bytes;
  for (const int id : byte_ids) {
    if (id < 0) return;
    bytes.set(static_cast<std::uint64_t>(id), true);
  }
  bool bytes_merge = false;
  merges.each([&](std::uint64_t pair, const Merge&) {
    bytes_merge = bytes_merge || bytes.contains(pair >> 32) || bytes.contains(pair & 0xffffffffu);
  });
  if (!bytes_merge) owner_ = ++owners;
}

void TokenMatcher::add(std::string_view text, int id) {
  starts_[static_cast<unsigned char>(text.front())] = true;
  int node = 0;
  for (const char c : text) {
    const std::uint64_t key = static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(c);
    if (const int* child = children_.find(key)) {
      node = *child;
      continue;
    }
    children_.set(key, nodes_);
    node = nodes_++;
    ends_.push_back(-1);
  }
  ends_[static_cast<size_t>(node)] = id;
}

TokenMatcher::Match TokenMatcher::next(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<unsigned char>(text[begin])]) continue;
    Match best{begin, begin, -1};
    int node = 0;
    for (size_t i = begin; i < text.size(); ++i) {
      const int* child = children_.find(static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(text[i]));
      if (!child) break;
      node = *child;
      if (const int id = ends_[static_cast<size_t>(node)]; id >= 0) best = {begin, i + 1, id};
    }
    if (best.id >= 0) return best;
  }
  return {text.size(), text.size(), -1};
}

}  // namespace mw::data
