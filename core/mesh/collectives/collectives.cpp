// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/collectives/collectives.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/mesh/collectives/reshard_plan.h"

namespace mw::mesh {
namespace {

using model::Role;

class CollectiveLister {
 public:
  CollectiveLister(const model::Config& config, const Mesh& mesh, const Placement& placement, const StepShape& step,
                   const ReshardPlans* plans, int device)
      : config_(config),
        placement_(placement),
        step_(step),
        form_(mesh, placement, step),
        plans_(plans),
        device_(device) {
    std::int64_t ways = 1;
    for (int a = 0; a < form_.axes(); ++a)
      if (form_.batch() >> a & 1) ways *= form_.size(a);
    rows_ = (step.rows + ways - 1) / ways;
    tokens_ = step.device_tokens >= 0 ? step.device_tokens : rows_ * step.tokens;
    logits_ = step.device_logits >= 0 ? step.device_logits : step.work == StepKind::decode ? rows_ : tokens_;
    train_ = step.work == StepKind::train_lora || step.work == StepKind::train_full;
    full_ = step.work == StepKind::train_full;
    for (const PlacedTensor& p : placement.adapters)
      if (step.work == StepKind::train_lora && (!learns_ || p.layer < lowest_)) {
        lowest_ = p.layer;
        learns_ = true;
      }
    learns_ = learns_ || full_;  // full: from the embedding on
  }

  std::vector<Collective> run() {
    if (form_.batch() == 0 && form_.model() == 0) return {};
    list_.reserve(placement_.tensors.size() * 2);
    vocabulary();
    for (const PlacedTensor& p : placement_.tensors) weight(p, step_.weight_bytes);
    for (const PlacedTensor& p : placement_.adapters) weight(p, step_.adapter_bytes);
    for (size_t layer = 0; layer < config_.layers.size(); ++layer)
      for (const Block block : {Block::attention, Block::mlp, Block::experts, Block::ple})
        sums(block, static_cast<int>(layer));
    for (size_t layer = 0; layer < config_.layers.size(); ++layer) exchange(static_cast<int>(layer));
    if (train_) gradients();
    for (const PlacedTensor& p : placement_.adapters)
      if (p.role == Role::lora_m) row_norms(p);
    return std::move(list_);
  }

 private:
  // --- One entry ---

  void add(CollectiveKind kind, int axis, Phase phase, Cause cause, int layer, const std::string& tensor,
           std::int64_t full, std::int64_t calls) {
    const int n = form_.size(axis);
    add({kind, axis, n, cause, full, bytes_sent(kind, Bytes(full), n).value}, phase, layer, tensor, 1, calls);
  }
  void add(const Stage& stage, Phase phase, int layer, const std::string& tensor, int bytes, std::int64_t calls) {
    if (stage.full == 0) return;  // a device without rows
    list_.push_back({.kind = stage.kind,
                     .axis = form_.name(stage.axis),
                     .group = stage.group,
                     .phase = phase,
                     .cause = stage.cause,
                     .layer = layer,
                     .tensor = tensor,
                     .full = Bytes(stage.full * bytes),
                     .moved = Bytes(stage.moved * bytes),
                     .calls = calls});
  }

  template <class Each>
  void for_axes(AxisSet set, const Each& each) {
    for (int a = 0; a < form_.axes(); ++a)
      if (set >> a & 1) each(a);
  }

  std::int64_t stream() const { return stream_of(tokens_); }
  std::int64_t stream_of(std::int64_t tokens) const { return tokens * config_.dim * step_.activation_bytes; }
  std::int64_t micro() const { return std::max(1, step_.accumulation); }

  bool has_backward(int layer) const { return learns_ && layer >= lowest_; }
  // Whether the backward needs the gradient of a block's input: something before it is trainable.
  bool passes_on(Block block, int layer) const {
    return learns_ && (full_ || layer > lowest_ || (layer == lowest_ && block != Block::attention));
  }

  // --- Weights that are whole in use ---

  void weight(const PlacedTensor& tensor, int bytes) {
    if ((form_.stored(tensor) & ~form_.working(tensor)) == 0) return;
    std::vector<Stage> stages = plans_ ? plans_->of(tensor).gather_reads(device_) : gather_stages(tensor, form_);
    std::reverse(stages.begin(), stages.end());  // inner axes first
    const auto gather = [&](Phase phase) {
      for (const Stage& stage : stages) add(stage, phase, tensor.layer, tensor.name, bytes, micro());
    };
    gather(Phase::forward);
    // The backward of the logits follows their forward directly: one gather serves both, also for the norm before
    // them. Lookups have no matrix product in the backward.
    const bool backward = block_of(tensor.base) == Block::vocab            ? false
                          : tensor.role == Role::altup_unembed_projections ? learns_  // after the layers
                          : tensor.layer < 0                               ? full_ && tensor.role != Role::final_norm
                                                                           : has_backward(tensor.layer);
    if (backward) gather(Phase::backward);
    if (tensor.role == Role::embed && config_.tied_embeddings) gather(Phase::forward);  // as output
  }

  // --- Sums over blocks that compute in parallel ---

  void sums(Block block, int layer) {
    const AxisSet parallel = form_.parallel(block, layer);
    if (parallel == 0) return;
    const std::string name = "layers." + std::to_string(layer) + "." + std::string(to_string(block));
    for_axes(parallel, [&](int a) {
      const bool split = form_.residual() >> a & 1;
      const auto in_and_out = [&](Phase phase) {
        if (!split)
          return add(CollectiveKind::all_reduce, a, phase, Cause::partial_sums, layer, name, stream(), micro());
        add(CollectiveKind::all_gather, a, phase, Cause::partial_sums, layer, name, stream(), micro());
        add(CollectiveKind::reduce_scatter, a, phase, Cause::partial_sums, layer, name, stream(), micro());
      };
      in_and_out(Phase::forward);
      if (!has_backward(layer)) return;
      if (step_.recompute == Recompute::layers) in_and_out(Phase::recompute);
      if (block == Block::experts)
        add(CollectiveKind::all_reduce, a, Phase::backward, Cause::partial_sums, layer,
            "layers." + std::to_string(layer) + ".router", tokens_ * config_.experts_per_token * 4, micro());
      if (passes_on(block, layer)) return in_and_out(Phase::backward);
      if (split)  // the gradient of its outputs still has to be whole
        add(CollectiveKind::all_gather, a, Phase::backward, Cause::partial_sums, layer, name, stream(), micro());
    });
  }

  // Each device has the squares of its inputs' columns.
  void row_norms(const PlacedTensor& magnitudes) {
    const std::int64_t calls = step_.row_norms >= 0 ? step_.row_norms : micro();
    if (calls == 0 || !splits_inputs(magnitudes.base)) return;
    for_axes(form_.parallel(magnitudes), [&](int a) {
      add(CollectiveKind::all_reduce, a, Phase::forward, Cause::partial_sums, magnitudes.layer, magnitudes.name,
          magnitudes.total() * 4, calls);
    });
  }

  // --- Tokens on their way to the experts of other devices ---

  void exchange(int layer) {
    const std::string name = "layers." + std::to_string(layer) + ".experts";
    for_axes(form_.expert_axes(layer), [&](int a) {
      const bool sends = step_.exchange == ExpertExchange::all_to_all;
      const std::int64_t full = stream() * (sends ? config_.experts_per_token : form_.size(a));
      const auto there_and_back = [&](Phase phase) {
        if (sends) return add(CollectiveKind::all_to_all, a, phase, Cause::experts, layer, name, full, 2 * micro());
        add(CollectiveKind::all_gather, a, phase, Cause::experts, layer, name, full, micro());
        add(CollectiveKind::reduce_scatter, a, phase, Cause::experts, layer, name, full, micro());
      };
      there_and_back(Phase::forward);
      if (!has_backward(layer)) return;
      if (step_.recompute == Recompute::layers) there_and_back(Phase::recompute);
      if (passes_on(Block::experts, layer)) there_and_back(Phase::backward);
    });
  }

  // --- Embedding, logits and loss ---

  void vocabulary() {
    if (const PlacedTensor* embed = form_.find(Role::embed, -1)) lookup(*embed, "embedding", config_.dim);
    if (const PlacedTensor* ple = form_.find(Role::ple_embed, -1))
      lookup(*ple, "per-layer embedding", static_cast<std::int64_t>(config_.layers.size()) * config_.ple_dim);
    AxisSet ple = 0;
    for (size_t layer = 0; layer < config_.layers.size(); ++layer)
      ple |= form_.parallel(Block::ple, static_cast<int>(layer));
    if (full_)  // each device has the gradient of its columns of the per-layer inputs
      for_axes(ple, [&](int a) {
        add(CollectiveKind::all_reduce, a, Phase::backward, Cause::partial_sums, -1, "per-layer embedding",
            tokens_ * static_cast<std::int64_t>(config_.layers.size()) * config_.ple_dim * step_.activation_bytes,
            micro());
      });
    const PlacedTensor* head = form_.find(config_.tied_embeddings ? Role::embed : Role::lm_head, -1);
    if (head) logits(*head);
  }

  // Each device looks up its own rows and leaves zeros for the others: the results are summed.
  void lookup(const PlacedTensor& table, const std::string& name, std::int64_t width) {
    const std::int64_t full = tokens_ * width * step_.activation_bytes;
    for_axes(form_.parallel(table), [&](int a) {
      const bool split = table.role == Role::embed && (form_.residual() >> a & 1);
      add(split ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, a, Phase::forward, Cause::embedding_rows,
          -1, name, full, micro());
      if (split && full_)
        add(CollectiveKind::all_gather, a, Phase::backward, Cause::embedding_rows, -1, name, full, micro());
    });
  }

  void logits(const PlacedTensor& head) {
    if (step_.work == StepKind::decode) gather_logits(head);
    for_axes(form_.parallel(head), [&](int a) { logits(a); });
  }

  // Inner axes first, with the padding of the vocabulary.
  void gather_logits(const PlacedTensor& head) {
    std::int64_t rows = config_.vocab;
    for_axes(form_.parallel(head), [&](int a) { rows = (rows + form_.size(a) - 1) / form_.size(a); });
    for (int a = form_.axes(); a-- > 0;) {
      if (!(form_.parallel(head) >> a & 1)) continue;
      rows *= form_.size(a);
      add(CollectiveKind::all_gather, a, Phase::forward, Cause::logits, -1, "logits",
          logits_ * rows * step_.logit_bytes, micro());
    }
  }

  void logits(int a) {
    const bool split = form_.residual() >> a & 1;
    if (split) add(CollectiveKind::all_gather, a, Phase::forward, Cause::partial_sums, -1, "logits", stream(), micro());
    if (step_.work == StepKind::decode) return;
    const std::int64_t chunk = step_.logits_at_once > 0 ? std::min(step_.logits_at_once, logits_) : logits_;
    if (chunk == 0) return;
    loss(a, chunk, logits_ / chunk);
    loss(a, logits_ % chunk, 1);
  }

  // Per token the maximum, then the sum of exponentials and the target's logit, in f32; then d hidden states.
  void loss(int a, std::int64_t tokens, std::int64_t times) {
    const bool split = form_.residual() >> a & 1;
    const std::int64_t calls = times * micro();
    add(CollectiveKind::all_reduce, a, Phase::forward, Cause::softmax, -1, "logits", tokens * 4, calls);
    add(CollectiveKind::all_reduce, a, Phase::forward, Cause::softmax, -1, "logits", tokens * 8, calls);
    if (learns_)
      add(split ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, a, Phase::backward, Cause::partial_sums,
          -1, "logits", stream_of(tokens), calls);
  }

  // --- Gradients ---

  void gradients() {
    if (full_)
      for (const PlacedTensor& p : placement_.tensors)
        if (p.role != Role::layer_scalar) gradient(p);
    if (!full_)
      for (const PlacedTensor& p : placement_.adapters) gradient(p);
  }

  void gradient(const PlacedTensor& tensor) {
    const bool each = step_.gradient_sum == GradientSum::each_micro_batch;
    for (const Stage& stage : plans_ ? plans_->of(tensor).sum_reads(device_) : sum_stages(tensor, form_))
      add(stage, each ? Phase::backward : Phase::update, tensor.layer, tensor.name, step_.gradient_bytes,
          each ? micro() : 1);
  }

  const model::Config& config_;
  const Placement& placement_;
  const StepShape& step_;
  const ComputeSharding form_;
  const ReshardPlans* const plans_;
  const int device_;
  std::int64_t rows_ = 0, tokens_ = 0, logits_ = 0;
  bool train_ = false, full_ = false, learns_ = false;
  int lowest_ = 0;  // layer that learns
  std::vector<Collective> list_;
};

}  // namespace

std::vector<Collective> collectives(const model::Config& config, const Mesh& mesh, const Placement& placement,
                                    const StepShape& step, const ReshardPlans* plans, int device) {
  return CollectiveLister(config, mesh, placement, step, plans, device).run();
}

std::vector<Collective> fuse_by_layer(const std::vector<Collective>& list) {
  using Key = std::tuple<Phase, int, std::string, CollectiveKind, Cause, std::int64_t>;
  std::map<Key, size_t> at;
  std::vector<Collective> out;
  for (const Collective& c : list) {
    const auto [found, fresh] = at.try_emplace(Key{c.phase, c.layer, c.axis, c.kind, c.cause, c.calls}, out.size());
    if (fresh) {
      out.push_back(c);
      out.back().tensor = c.layer < 0 ? "model" : "layers." + std::to_string(c.layer);
      continue;
    }
    out[found->second].full += c.full;
    out[found->second].moved += c.moved;
  }
  return out;
}

Bytes bytes_sent(CollectiveKind kind, Bytes full, int group) {
  const Bytes once = full - Bytes(full.value / group);
  return kind == CollectiveKind::all_reduce ? once + once : once;
}

Bytes moved(const std::vector<Collective>& list) {
  Bytes sum;
  for (const Collective& c : list) sum += c.moved * c.calls;
  return sum;
}

std::string to_string(CollectiveKind kind) {
  static constexpr const char* kNames[] = {"all-gather", "reduce-scatter", "all-reduce", "all-to-all"};
  return kNames[static_cast<size_t>(kind)];
}

std::string to_string(Phase phase) {
  static constexpr const char* kNames[] = {"forward", "recompute", "backward", "update"};
  return kNames[static_cast<size_t>(phase)];
}

std::string to_string(Cause cause) {
  static constexpr const char* kNames[] = {"weights gathered for their use",
                                           "gathered because the spec does not suit the matmul",
                                           "partial sums of parallel matmuls",
                                           "lookups in a vocabulary in parts",
                                           "softmax over a vocabulary in parts",
                                           "whole logits for sampling",
                                           "gradients",
                                           "tokens sent to their experts and back"};
  return kNames[static_cast<size_t>(cause)];
}

}  // namespace mw::mesh
