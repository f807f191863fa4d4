// SPDX-License-Identifier: Apache-2.0
#include "core/engine/generate/sampler.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/engine/generate/paged_decoder.h"
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

}  // namespace mw::engine
