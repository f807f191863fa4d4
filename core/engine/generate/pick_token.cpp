// SPDX-License-Identifier: Apache-2.0
// A vocabulary has 262144 entries, so only the few candidates that can be chosen are sorted.
#include "core/engine/generate/pick_token.h"

#include <algorithm>

#include "core/base/rng.h"
#include "core/engine/kernels/vector.h"

namespace mw::engine {
namespace {

// In four chains, so that the additions overlap.
double sum_of(std::span<const float> p) {
  double sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= p.size(); i += 4)
    for (size_t j = 0; j < 4; ++j) sums[j] += static_cast<double>(p[i + j]);
  for (; i < p.size(); ++i) sums[0] += static_cast<double>(p[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

double sum_of(std::span<const TokenCandidate> candidates) {
  double sum = 0;
  for (const TokenCandidate& c : candidates) sum += static_cast<double>(c.value);
  return sum;
}

// A superset of the tokens that top-p keeps: all with a probability of at least a threshold, which is lowered until
// they carry enough probability.
std::vector<TokenCandidate> enough_for(std::span<const float> p, double mass) {
  const float best = vector_kernels().max(static_cast<std::int64_t>(p.size()), p.data());
  std::vector<TokenCandidate> out;
  for (float least = best / 64;; least = least > 1e-30f ? least / 4096 : 0) {
    out.clear();
    for (size_t i = 0; i < p.size(); ++i)
      if (p[i] >= least) out.push_back({p[i], static_cast<int>(i)});
    if (out.size() == p.size() || sum_of(out) >= mass) return out;
  }
}

// The tokens that top-k and top-p keep, likeliest first.
std::vector<TokenCandidate> kept(std::span<const float> p, const options::SampleOptions& o) {
  std::vector<TokenCandidate> all;
  double wanted = static_cast<double>(o.top_p);
  if (o.top_k > 0) {
    all = likeliest(p, static_cast<size_t>(o.top_k));
    if (!(o.top_p < 1)) return all;
    wanted *= sum_of(all);
  } else {
    wanted *= sum_of(p);
    all = enough_for(p, wanted);
  }
  // A heap: top-p seldom wants more than the first few.
  const auto worse = [](const TokenCandidate& a, const TokenCandidate& b) { return likelier(b, a); };
  std::make_heap(all.begin(), all.end(), worse);
  std::vector<TokenCandidate> out;
  for (double mass = 0; !all.empty() && mass < wanted;) {
    std::pop_heap(all.begin(), all.end(), worse);
    out.push_back(all.back());
    all.pop_back();
    mass += static_cast<double>(out.back().value);
  }
  return out;
}

int pick_of(std::span<const TokenCandidate> candidates, double uniform) {
  double left = sum_of(candidates) * uniform;
  for (const TokenCandidate& c : candidates)
    if ((left -= static_cast<double>(c.value)) < 0) return c.id;
  return candidates.back().id;
}

// The first of the largest.
int greedy(std::span<const float> logits) {
  constexpr size_t kBlock = 4096;
  const VectorKernels& v = vector_kernels();
  size_t at = 0;
  float best = v.max(static_cast<std::int64_t>(std::min(kBlock, logits.size())), logits.data());
  for (size_t begin = kBlock; begin < logits.size(); begin += kBlock) {
    const auto n = static_cast<std::int64_t>(std::min(kBlock, logits.size() - begin));
    if (const float most = v.max(n, logits.data() + begin); most > best) best = most, at = begin;
  }
  while (at < logits.size() && logits[at] != best) ++at;
  return static_cast<int>(std::min(at, logits.size() - 1));  // the last one where nothing is a number
}

int pick_of_all(std::span<const float> p, double uniform) {
  constexpr size_t kBlock = 1024;
  double left = sum_of(p) * uniform;
  int last = 0;
  for (size_t begin = 0; begin < p.size(); begin += kBlock) {
    const auto block = p.subspan(begin, std::min(kBlock, p.size() - begin));
    const double sum = sum_of(block);
    if (left >= sum && begin + kBlock < p.size()) {
      left -= sum;
      continue;
    }
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i] > 0) last = static_cast<int>(begin + i);
      if ((left -= static_cast<double>(block[i])) < 0) return last;
    }
    left = std::max(left, 0.0);  // rounding between the block's sum and its terms
  }
  return last;
}

}  // namespace

std::vector<TokenCandidate> likeliest(std::span<const float> values, size_t k) {
  constexpr size_t kBlock = 256;  // passed over whole if nothing in it is among the best so far
  const VectorKernels& v = vector_kernels();
  k = std::min(k, values.size());
  std::vector<TokenCandidate> best;  // a heap with the worst in front
  if (k == 0) return best;
  for (size_t i = 0; i < k; ++i) best.push_back({values[i], static_cast<int>(i)});
  std::make_heap(best.begin(), best.end(), likelier);
  for (size_t begin = k; begin < values.size(); begin += kBlock) {
    const size_t end = std::min(begin + kBlock, values.size());
    if (!(v.max(static_cast<std::int64_t>(end - begin), values.data() + begin) > best.front().value)) continue;
    for (size_t i = begin; i < end; ++i) {
      if (!(values[i] > best.front().value)) continue;
      std::pop_heap(best.begin(), best.end(), likelier);
      best.back() = {values[i], static_cast<int>(i)};
      std::push_heap(best.begin(), best.end(), likelier);
    }
  }
  std::sort_heap(best.begin(), best.end(), likelier);
  return best;
}

double sampling_uniform(std::uint64_t seed, int row, int position) {
  const Rng rng{seed, 0x73616d70, static_cast<std::uint64_t>(row)};
  return (static_cast<double>(rng.at(static_cast<std::uint64_t>(position)) >> 11) + 0.5) * 0x1p-53;
}

int pick_token(std::span<float> logits, const options::SampleOptions& o, double uniform) {
  if (!(o.temperature > 0)) return greedy(logits);
  const VectorKernels& v = vector_kernels();
  const auto n = static_cast<std::int64_t>(logits.size());
  const float best = v.max(n, logits.data()), inverse = 1 / o.temperature;
  for (float& x : logits) x = (x - best) * inverse;
  v.softmax(n, 0, n, logits.data());
  if (o.min_p > 0) {
    const float least = o.min_p * v.max(n, logits.data());
    std::replace_if(
        logits.begin(), logits.end(), [least](float p) { return p < least; }, 0.0f);
  }
  if (o.top_k > 0 || o.top_p < 1) return pick_of(kept(logits, o), uniform);
  return pick_of_all(logits, uniform);
}

}  // namespace mw::engine
