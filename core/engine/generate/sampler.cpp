// SPDX-License-Identifier: Apache-2.0
#include "core/engine/generate/sampler.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/engine/generate/paged_decoder.h"
#include "core/engine/kernels/vector.h"
#include "core/engine/transformer/checks.h"

namespace mw::engine {
namespace {

void check(std::span<const std::vector<int>> prompts, int vocab) {
  for (const std::vector<int>& prompt : prompts) {
    if (prompt.empty()) throw Error("PROMPT", "the prompt is empty", {.expected = "at least the bos token"});
    for (const int id : prompt)
      if (id < 0 || id >= vocab)
        throw Error("PROMPT", "a prompt token is outside the vocabulary",
                    {.found = std::to_string(id), .expected = "0.." + std::to_string(vocab - 1)});
  }
}

// The state of one call of generate_batch.
class Generation {
 public:
  Generation(Transformer& net, std::span<const std::vector<int>> prompts, const options::SampleOptions& options,
             const Sampler::OnToken& on_token)
      : net_(net),
        prompts_(prompts),
        options_(options),
        on_token_(on_token),
        out_(prompts.size()),
        decoder_(net, lengths(net, prompts, options)) {
    if (net.splits_vocab()) gathered_ = DeviceBuffer<float>(net.device.arena, gathered_logits(net.weights));
  }

  std::vector<std::vector<int>> run(const std::stop_token& stop) {
    for (size_t next = 0; next < prompts_.size() && !stop.stop_requested();) prefill(next);
    while (!active_.empty() && !stop.stop_requested()) {
      std::vector<Continuation> steps;
      for (const int row : active_)
        steps.push_back({row, std::span<const int>(out_[static_cast<size_t>(row)]).last(1)});
      active_.clear();
      step(steps);
    }
    return std::move(out_);
  }

 private:
  // The most tokens of each row; prepares the RoPE tables for them.
  static std::vector<int> lengths(Transformer& net, std::span<const std::vector<int>> prompts,
                                  const options::SampleOptions& options) {
    std::vector<int> tokens;
    for (const auto& prompt : prompts) tokens.push_back(static_cast<int>(prompt.size()) + options.max_new_tokens);
    net.buffers.prepare_rope(*std::max_element(tokens.begin(), tokens.end()) - 1);
    return tokens;
  }

  // Takes as many prompts from `next` on as fit one pass.
  void prefill(size_t& next) {
    std::vector<Continuation> steps;
    size_t tokens = 0;
    for (; next < prompts_.size(); ++next) {
      tokens += prompts_[next].size();
      if (!steps.empty() && tokens > size_t{Sampler::kPrefillTokens}) break;
      steps.push_back({static_cast<int>(next), prompts_[next]});
    }
    step(steps);
  }

  // Advances the rows by one token each; those that continue join active_.
  void step(std::span<const Continuation> steps) {
    const std::int64_t vocab = net_.config.vocab;
    float* logits = decoder_.advance(steps).data();
    std::vector<int> ids(steps.size());
    const auto pick = [&](std::int64_t i, float* of_all) {
      const int row = steps[static_cast<size_t>(i)].row;
      const auto position = static_cast<int>(out_[static_cast<size_t>(row)].size());
      ids[static_cast<size_t>(i)] = pick_token({of_all, static_cast<size_t>(net_.vocab())}, options_,
                                               sampling_uniform(options_.seed, options_.first_row + row, position));
    };
    const auto count = static_cast<std::int64_t>(steps.size());
    const auto pick_all = [&] {
      const auto timer = net_.profile.time(Kernel::sampling);
      if (!net_.splits_vocab())
        return net_.device.pool.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) pick(i, logits + i * vocab);
        });
      for (std::int64_t i = 0; i < count; ++i) {  // every device picks from the same logits
        net_.hooks->gather_logits({logits + i * vocab, static_cast<size_t>(vocab)}, gathered_.span());
        pick(i, gathered_.data());
      }
    };
    pick_all();
    for (size_t i = 0; i < steps.size(); ++i)
      if (accept(steps[i].row, ids[i])) active_.push_back(steps[i].row);
  }

  bool accept(int row, int id) {
    if (std::find(options_.stop_ids.begin(), options_.stop_ids.end(), id) != options_.stop_ids.end()) return false;
    std::vector<int>& answer = out_[static_cast<size_t>(row)];
    answer.push_back(id);
    if (on_token_ && !on_token_(row, id)) return false;
    return static_cast<int>(answer.size()) < options_.max_new_tokens;
  }

  Transformer& net_;
  std::span<const std::vector<int>> prompts_;
  const options::SampleOptions& options_;
  const Sampler::OnToken& on_token_;
  std::vector<std::vector<int>> out_;
  std::vector<int> active_;  // rows that continue, in order
  SequenceDecoder decoder_;
  DeviceBuffer<float> gathered_;  // a row of logits
};

}  // namespace

std::vector<std::vector<int>> Sampler::generate_batch(std::span<const std::vector<int>> prompts,
                                                      const options::SampleOptions& options, std::stop_token stop,
                                                      const OnToken& on_token) {
  Transformer& net = network_.transformer();
  check(prompts, net.vocab());
  if (prompts.empty() || options.max_new_tokens <= 0) return std::vector<std::vector<int>>(prompts.size());
  for (const std::vector<int>& prompt : prompts)
    check_context(net.config, static_cast<std::int64_t>(prompt.size()) + options.max_new_tokens);
  return Generation(net, prompts, options, on_token).run(stop);
}

std::vector<int> Sampler::generate(std::span<const int> prompt, const options::SampleOptions& options,
                                   std::stop_token stop, const std::function<bool(int)>& on_token) {
  const std::vector<int> only(prompt.begin(), prompt.end());
  OnToken one;
  if (on_token) one = [&](int, int id) { return on_token(id); };
  return generate_batch({&only, 1}, options, std::move(stop), one).front();
}

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
