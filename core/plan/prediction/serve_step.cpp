// SPDX-License-Identifier: Apache-2.0
#include "core/plan/prediction/serve_step.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "core/base/buffer_sizes.h"
#include "core/base/counted.h"
#include "core/mesh/collectives/collectives.h"
#include "core/model/config.h"
#include "core/plan/prediction/activations.h"
#include "core/plan/prediction/collective_time.h"
#include "core/plan/prediction/device_memory.h"
#include "core/plan/prediction/step_time.h"
#include "core/plan/request/estimate.h"
#include "core/plan/request/local_model.h"

namespace mw::plan {
namespace {

enum class Buckets { none, powers_of_two };

// Shares of the peak in prefill attention if no fused kernel supports the head size: vLLM's Triton kernel, which all
// layers of a model use as soon as one has heads beyond 256 (vllm/model_executor/models/config.py, Gemma4Config; until
// FA4 took them, vllm pull request 42175). 79-80 and 159-160 of 1,307 TFLOP/s at Gemma 4 31B's 512 and 256 before
// tuning (MI325X, ROCm/aiter pull request 5664); on H100 it is as poorly occupied, 6-13 % (vllm pull request 43257).
constexpr int kFusedHead = 256;
Efficiency triton_attention(double head_dim) {
  const char* source =
      "Triton attention of heads beyond 256 (vLLM on GPUs): 6.1 % of the peak at 512, 12.2 % at 256 "
      "on MI325X (ROCm/aiter 5664)";
  if (head_dim > kFusedHead) return {0.061, 0.06, 0.13, Origin::transferred, source};
  return {0.122, 0.12, 0.26, Origin::transferred, source};
}

// Shares of the memory bandwidth in reads of the KV cache by the same kernels: 1,919 GB/s of 6 TB/s with 64 sequences
// at heads of 512 (MI325X, ROCm/aiter pull request 5664), and 537 MB in 167 µs with 32 sequences at heads of 256 (vLLM
// 0.28 there, ROCm/aiter pull request 5415), which take 60 µs for a single sequence.
constexpr double kTritonReads = 6e-5;  // seconds of a layer at least
Efficiency triton_reads(double head_dim) {
  if (head_dim > kFusedHead)
    return {
        0.32, 0.25, 0.40, Origin::transferred,
        "Triton attention of heads beyond 256 reads the KV cache at 32 % of the bandwidth on MI325X (ROCm/aiter 5664)"};
  return {0.54, 0.45, 0.65, Origin::transferred,
          "Triton attention of heads of 256 reads the KV cache at 54 % of the bandwidth on MI325X (ROCm/aiter 5415)"};
}

// A share of what another kernel reaches.
Efficiency of_share(Efficiency e, const Efficiency& share) {
  e.value *= share.value, e.low *= share.value, e.high *= share.value;
  if (share.value != 1) e.source += ", times " + number_text(share.value, 3) + ": " + share.source;
  return e;
}

constexpr double kOwnSums = 8 * 1048576.0;  // bytes: below, servers on GPUs sum with a kernel of their own
// Rows that the grouped products of experts compute at once: blocks of vLLM's fused kernel for few tokens
// (fused_moe.py, get_default_config), rows of a bf16 tile on TPUs.
constexpr double kExpertRows = 16;
constexpr int kFirstTokens = 16, kFirstRequests = 8;  // smallest buckets of vLLM on TPUs (tpu-inference)
// Reads and writes of each f32 logit in sampling with top-k and top-p on TPUs (tpu-inference, layers/common/
// binary_search.py and layers/jax/sample/sampling.py): either filter finds its threshold with 32 sums over the logits;
// temperature 2, two transposed copies 4, softmax 4, masks 5, the draw 1.
constexpr double kSamplingPasses = 2 * 32 + 16;
// Logits of few requests stay in on-chip memory between the passes: 16 rows of 262,144 do on v6e, an eighth of it, 32
// do not, by the time per token of Gemma 4 E2B, E4B and 12B there (XB, calibration rows).
constexpr double kSampledOnChip = 1.0 / 8;

// Seconds as a function of a count, interpolated linearly between eight points per octave.
class Curve {
 public:
  template <class At>  // at(count): the seconds of both
  static void fill(Curve& first, Curve& second, const At& at) {
    for (size_t i = 0; i < first.points_.size(); ++i)
      std::tie(first.points_[i], second.points_[i]) = at(static_cast<std::int64_t>(count_at(i)));
  }
  double operator()(std::int64_t n) const {
    if (n <= 0) return 0;
    const auto x = static_cast<std::uint64_t>(n) << 3;  // so that counts below eight have points, too
    const int octave = std::bit_width(x) - 4;
    const size_t i = static_cast<size_t>(octave) * 8 + ((x >> octave) & 7);
    if (i + 1 >= points_.size()) return points_.back() * static_cast<double>(n) / count_at(points_.size() - 1);
    const double a = count_at(i), b = count_at(i + 1);
    return points_[i] + (points_[i + 1] - points_[i]) * (static_cast<double>(n) - a) / (b - a);
  }

 private:
  static double count_at(size_t i) { return std::ldexp(static_cast<double>(8 + i % 8), static_cast<int>(i / 8) - 3); }
  std::array<double, 8 * 21 + 1> points_{};
};

// Seconds of attention of decoding requests in vLLM's kernel on TPUs (ragged paged attention v3 of tpu-inference). The
// kernel reads the cache in blocks: windows skip whole blocks only, and the matrix units multiply whole blocks however
// short the context is.
class PagedAttentionTime {
 public:
  void set(const LocalModel& model);  // of a server on TPUs
  explicit operator bool() const { return !kinds_.empty(); }
  // The mean number of keys that the kernel multiplies with each query of a long prompt under a window of `window`
  // keys.
  static double walked(int window);
  // Seconds for one request with `context` tokens at `share` of the memory bandwidth.
  double seconds(double context, double share) const;
  // Whether most of these seconds are products of whole blocks, which a smaller KV type does not shorten.
  bool is_bound_by_products(double context, double share) const {
    return seconds(context, 1e6 * share) > 0.5 * seconds(context, share);
  }

 private:
  struct Kind {
    int count = 0, window = 0;        // layers; window 0: full attention
    double block = 0;                 // tokens of a block
    double token_s = 0, block_s = 0;  // at the full bandwidth; at the peak
  };
  std::vector<Kind> kinds_;
};

// Tokens of a block in decode without a tuned size (tpu-inference v0.19.0, kernels/ragged_paged_attention/v3/
// kernel.py, get_default_block_sizes): 16 MiB in words of 32 bits, at most the longest request. Of a cache with smaller
// elements as many tokens as in bf16: twice as many would make short contexts multiply more (a server can set the
// size).
double block_of(const LayerKind& kind, const Request& request) {
  const int packing = 4 / std::clamp(bytes_of(request.kv), 2, 4), lanes = (kind.shape.head_dim + 127) / 128 * 128;
  const int both = 2 * std::max(1, static_cast<int>(std::lround(kind.kv_heads)));  // keys and values
  const auto heads = std::bit_ceil(static_cast<unsigned>((both + packing - 1) / packing * packing));
  const double to_peak = 16.0 * 1048576 * packing / 4 / lanes / heads;
  return std::min(to_peak, static_cast<double>(request.serve.max_model_len));
}

void PagedAttentionTime::set(const LocalModel& model) {
  kinds_.clear();
  const Request& r = *model.request;
  const hardware::Chip& chip = r.target.chip;
  const double per_chip = std::max(1, chip.devices_per_chip), unit = std::max(8, chip.matrix_unit);
  const double peak = chip.bf16_flops.value / per_chip, bandwidth = chip.memory_bandwidth.value / per_chip;
  for (const LayerKind& k : model.kinds) {
    const bool slides = k.shape.attention == model::Attention::sliding && model.config.sliding_window > 0;
    Kind kind{.count = k.count, .window = slides ? model.config.sliding_window : 0, .block = block_of(k, r)};
    if (slides && r.sliding_window_kv) kind.block = std::min<double>(kind.block, kind.window);
    kind.token_s = 2 * k.kv() * bytes_of(r.kv) / bandwidth;
    // Few queries share a KV head, but the matrix unit loads a tile of keys or values as for a whole tile of queries.
    const double rows = std::ceil(k.heads / std::max(1.0, k.kv_heads) / unit) * unit;
    const double lanes = std::ceil(k.shape.head_dim / unit) * unit;
    kind.block_s = 2 * 2 * rows * k.kv_heads * lanes * kind.block / peak;
    kinds_.push_back(kind);
  }
}

// Queries and keys go in blocks there (512 at two queries a head of keys, 1,024): each block of queries meets the whole
// blocks that its window touches.
double PagedAttentionTime::walked(int window) {
  return window + 512.0 + 1024.0;
}

double PagedAttentionTime::seconds(double context, double share) const {
  double sum = 0;
  for (const Kind& k : kinds_) {
    const double skipped = k.window > 0 ? std::floor(std::max(0.0, context - k.window) / k.block) : 0;
    const double blocks = std::ceil(context / k.block) - skipped;
    sum += k.count * std::max((context - skipped * k.block) * k.token_s / share, blocks * k.block_s);
  }
  return sum;
}

struct Rate {  // seconds per unit at best, and what share of that is reached
  double best = 0;
  Efficiency share{1, 1, 1, Origin::floor, ""};
  double seconds() const { return best / share.value; }
  Estimate estimate(double units) const { return units * best / share; }
};

}  // namespace

struct ServeStepModel::Impl {
  Request request;
  int window = 0, ways = 1;
  Buckets buckets = Buckets::none;
  int most_tokens = 0, most_requests = 0;
  double body_flops = 0;      // of a device, per token
  double on_chip = 0;         // bytes of on-chip memory of a device
  double on_chip_tokens = 0;  // whose activations stay there from one operation to the next
  // Rates whose unit is a step, a token, a request, a KV token, or a pair of query and key.
  Rate weights, head_weights, token, head_row, traffic, kv_full, kv_window, pair_full, pair_window;
  Rate query;                // of a prompt token in the engine's attention, beside its pairs
  Rate expert, expert_row;   // of reading one expert of every layer; of a token at one expert of every layer
  Rate sampled_row;          // of choosing the token of a request
  double sampled_bytes = 0;  // of its logits
  Curve token_sums, request_sums;
  std::optional<Efficiency> triton_full, triton_window;  // in place of the attention share
  std::optional<Efficiency> reads_full, reads_window;    // in place of kv_reads
  double least_full_s = 0, least_window_s = 0;           // of reading the cache, however short it is
  PagedAttentionTime paged;                              // of servers on TPUs, in place of kv_full and kv_window
  double window_span = 1;                                // keys that a prompt's kernel walks for each in its window
  bool engine = false;
  double bandwidth = 0;  // of a device
  double threads_per_kv =
      0;  // of the engine: its threads over the KV heads of a layer, each head of a sequence has one
  Kv kv;
  // Quotients of the rates above, computed once.
  double weights_s = 0, head_weights_s = 0, token_s = 0, head_row_s = 0, traffic_s = 0, pair_full_s = 0,
         pair_window_s = 0, query_s = 0, step_s = 0, sequence_s = 0, expert_s = 0, expert_row_s = 0, sampled_row_s = 0,
         prompt_host_s = 0;

  explicit Impl(const LocalModel& model);
  void set(const Efficiencies& efficiencies);
  void add_products(const LocalModel& model);
  void set_on_chip(const LocalModel& model);
  void add_attention(const LocalModel& model);
  void set_cache(const LocalModel& model);
  void set_reads(const LocalModel& model);
  void add_sums(const LocalModel& model);
  double sum_seconds(const LocalModel& model, const mesh::Collective& collective) const;
  void set_groups(const LocalModel& model);

  bool slides(const LayerKind& kind) const { return kind.shape.attention == model::Attention::sliding && window > 0; }
  std::int64_t share(std::int64_t n) const { return ways > 1 ? (n + ways - 1) / ways : n; }
  // The share of the decoding requests, and of the prompts, on the replica with the most of them. A replica computes
  // whole requests, so that one prompt takes no less time beside idle replicas.
  static double busiest(int requests, std::int64_t on_replica) {
    return requests > 0 ? static_cast<double>(on_replica) / requests : 0;
  }
  double decode_share(const StepLoad& load) const {
    return ways > 1 ? busiest(load.decoding, share(load.decoding)) : 1;
  }
  double prompt_share(const StepLoad& load) const {
    if (ways == 1) return 1;
    return load.prefilling > 0 ? busiest(load.prefilling, share(load.prefilling)) : 1.0 / ways;
  }
  std::int64_t padded(std::int64_t n, int first, int most) const {
    if (buckets == Buckets::none || n <= 0) return n;
    const auto bucket =
        static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(n, first))));
    return bucket > most && n <= most ? most : bucket;
  }
  // Tokens and requests of the busiest replica, before padding.
  std::int64_t own_tokens(const StepLoad& load) const {
    const std::int64_t prompts = std::min(share(load.decoding + load.prefilling), share(load.prefilling));
    return share(load.decoding + load.prefilling) - prompts +
           static_cast<std::int64_t>(std::ceil(static_cast<double>(load.prefill_tokens) * prompt_share(load)));
  }
  std::int64_t tokens(const StepLoad& load) const { return padded(own_tokens(load), kFirstTokens, most_tokens); }
  std::int64_t requests(const StepLoad& load) const {
    return padded(share(load.decoding + load.prefilling), kFirstRequests, most_requests);
  }
  double off_chip(double tokens) const { return std::max(0.0, tokens - on_chip_tokens); }
  // Weights are read once; for many tokens the products take longer than the reads.
  double products(double tokens) const { return std::max(weights_s, tokens * token_s); }
  double layers() const { return static_cast<double>(request.model.layers.size()); }
  double sampled(double rows) const { return rows * sampled_bytes > kSampledOnChip * on_chip ? rows : 0; }
  double head(double rows) const { return std::max(head_weights_s, rows * head_row_s); }
  // The experts that `own` tokens choose are read, and each multiplies blocks of rows, the last of which is half full
  // on average. The padding to `tokens` tokens all goes to the same experts.
  double experts_read(double own, double tokens) const {
    const int shared = expert_ways(request);
    return model::expected_experts(request.model, (tokens > own ? own + 1 : own) * shared) / shared;
  }
  double expert_rows(double own, double tokens) const {
    return tokens * request.model.experts_per_token + experts_read(own, tokens) * (kExpertRows - 1) / 2;
  }
  double experts(double own, double tokens) const {
    if (expert_s <= 0) return 0;
    return std::max(experts_read(own, tokens) * expert_s, expert_rows(own, tokens) * expert_row_s);
  }
  Estimate experts_estimate(double own, double tokens) const {
    if (expert_s <= 0) return {};
    const Estimate read = expert.estimate(experts_read(own, tokens)),
                   computed = expert_row.estimate(expert_rows(own, tokens));
    return read.value > computed.value ? read : computed;
  }
  double window_pairs(const StepLoad& load) const {
    return window_span > 1 ? std::min(load.prefill_window_pairs * window_span, load.prefill_pairs)
                           : load.prefill_window_pairs;
  }
  // Seconds of KV cache reads by decoding requests, at one of the values of the efficiency.
  double reads(const StepLoad& load, double Efficiency::*at) const {
    if (load.decoding == 0) return 0;
    if (paged)
      return static_cast<double>(share(load.decoding)) *
             paged.seconds(load.read_tokens / load.decoding, kv_full.share.*at);
    const double own = decode_share(load);
    if (engine) {
      const double best = load.read_tokens * kv_full.best + load.read_window_tokens * kv_window.best,
                   idle = std::max(1.0, threads_per_kv / load.decoding);
      return best * idle / kv_share(request.efficiencies.engine, best * bandwidth) / (kv_full.share.*at);
    }
    return std::max(least_full_s, load.read_tokens * own * kv_full.best / (kv_full.share.*at)) +
           std::max(least_window_s, load.read_window_tokens * own * kv_window.best / (kv_window.share.*at));
  }
};

ServeStepModel::Impl::Impl(const LocalModel& m) : request(*m.request) {
  ways = std::max(1, m.batch_ways);
  window = request.model.sliding_window;
  buckets = request.profile.static_shapes ? Buckets::powers_of_two : Buckets::none;
  most_tokens = std::max(kFirstTokens, request.serve.max_num_batched_tokens);
  engine = request.stack == model::Stack::engine;
  bandwidth = request.target.chip.memory_bandwidth.value / std::max(1, request.target.chip.devices_per_chip);
  add_products(m);
  set_on_chip(m);
  add_attention(m);
  add_sums(m);
  set_cache(m);
  set(request.efficiencies);
}

void ServeStepModel::Impl::set(const Efficiencies& e) {
  request.efficiencies = e;
  step_s = e.step_s.value + layers() * e.layer_s.value;
  sequence_s = e.sequence_s.value;
  for (Rate* rate : {&weights, &head_weights, &traffic, &expert}) rate->share = e.memory;
  sampled_row.share = e.sampling;
  head_row.share = e.matmul;
  for (Rate* rate : {&token, &expert_row})
    rate->share = request.products == model::DType::fp8 ? fp8_share(request) : e.matmul;
  kv_full.share = reads_full ? of_share(*reads_full, e.triton_reads) : e.kv_reads;
  kv_window.share = reads_window ? of_share(*reads_window, e.triton_reads) : e.kv_reads;
  pair_full.share = engine ? e.matmul : triton_full.value_or(e.attention);
  pair_window.share = engine ? e.matmul : triton_window.value_or(e.attention);
  query.share = e.matmul;
  weights_s = weights.seconds(), head_weights_s = head_weights.seconds(), token_s = token.seconds();
  head_row_s = head_row.seconds(), traffic_s = traffic.seconds();
  pair_full_s = pair_full.seconds(), pair_window_s = pair_window.seconds();
  query_s = query.seconds();
  expert_s = expert.seconds(), expert_row_s = expert_row.seconds();
  sampled_row_s = sampled_row.seconds();
  prompt_host_s = layers() * e.prompt_layer_s.value;
}

void ServeStepModel::Impl::add_products(const LocalModel& m) {
  const hardware::Chip& chip = request.target.chip;
  const double per_chip = std::max(1, chip.devices_per_chip), unit = std::max(1, chip.matrix_unit);
  const bool fp8 = request.products == model::DType::fp8 && chip.fp8_flops;
  const double peak = (fp8 ? chip.fp8_flops.value : products_peak(request)) / per_chip;
  const double output = engine ? request.efficiencies.engine.output_columns : 0;
  double elements = 0, bytes = 0, expert_elements = 0, expert_flops = 0;  // of one expert of every layer
  const double chosen = std::max(1, m.config.experts_per_token);
  const auto expert_product = [&](double in, double out, double times) {
    expert_elements += times * in * out;
    expert_flops += times * 2 * round_up(in, unit) * round_up(out, unit);
  };
  const auto product = [&](double in, double out, double times) {
    elements += times * in * out;
    body_flops += times * 2 * (round_up(in, unit) + output) * round_up(out, unit);
  };
  for (const LayerKind& k : m.kinds) {
    for (const Product& p : k.products) {
      if (p.role == model::Role::experts_gate_up)
        expert_product(p.in, p.out / chosen, k.count);
      else if (p.role == model::Role::experts_down)
        expert_product(p.in / chosen, p.out, k.count);
      else
        product(p.in, p.out, k.count);
    }
    for (const auto* parts : {&k.lora_a, &k.lora_b})
      for (const Product& p : *parts) product(p.in, p.out, k.count);
    bytes += k.count * layer_traffic(m, k, request.serve.max_model_len).forward;
  }
  if (m.config.ple_dim > 0) product(m.config.dim, static_cast<double>(m.layers()) * m.config.ple_dim, 1);
  product(m.config.dim, m.config.dim, 2.0 * (model::residual_streams(m.config) - 1));  // AltUp's streams, and back
  const double head = static_cast<double>(m.config.dim) * m.vocab;
  weights.best = elements * bytes_of(request.weights) / bandwidth;
  head_weights.best = head * m.head_bytes() / bandwidth;
  token.best = body_flops / peak;
  expert.best = expert_elements * bytes_of(request.weights) / bandwidth;
  expert_row.best = expert_flops / peak;
  head_row.best = 2 * head / (products_peak(request) / per_chip);
  traffic.best = bytes / bandwidth;
  // Every device holds the logits of the whole vocabulary.
  if (request.stack == model::Stack::vllm_tpu && request.serve.sampling == options::Sampling::top_k_top_p)
    sampled_row.best = kSamplingPasses * m.config.vocab * 4 / bandwidth, sampled_bytes = m.config.vocab * 4.0;
}

// XLA keeps arrays that fit in the on-chip memory of a TPU (xla/service/memory_space_assignment): the residual stream,
// the input of a block, and queries, keys and values, the outputs of gate and up, or each token's copies for its
// experts and their outputs. GPUs have no such memory.
void ServeStepModel::Impl::set_on_chip(const LocalModel& m) {
  const hardware::Chip& chip = request.target.chip;
  on_chip = chip.on_chip_memory.value / std::max(1, chip.devices_per_chip);
  double widest = 0;
  for (const LayerKind& k : m.kinds) widest = std::max({widest, k.q() + 2 * k.kv(), 2 * k.mlp});
  if (m.config.experts > 0) widest = std::max(widest, 2 * m.config.experts_per_token * m.width);
  const double each = (2 * m.width + widest) * activation_bytes(request);
  on_chip_tokens = on_chip / each;
}

void ServeStepModel::Impl::add_attention(const LocalModel& m) {
  const hardware::Chip& chip = request.target.chip;
  const double peak = products_peak(request) / std::max(1, chip.devices_per_chip);
  const EngineCosts& costs = request.efficiencies.engine;
  double flops[2] = {}, heads = 0, fewest_kv_heads = 0;  // layers that see everything, sliding ones
  int head_dim[2] = {}, layers[2] = {};
  for (const LayerKind& k : m.kinds) {
    const size_t i = slides(k);
    layers[i] += k.count;
    flops[i] += k.count * 4 * k.q();
    head_dim[i] = std::max(head_dim[i], k.shape.head_dim);
    heads += k.count * k.heads;
    fewest_kv_heads = fewest_kv_heads > 0 ? std::min(fewest_kv_heads, k.kv_heads) : k.kv_heads;
  }
  if ((request.stack == model::Stack::vllm_gpu || request.stack == model::Stack::sglang) &&
      std::max(head_dim[0], head_dim[1]) > kFusedHead) {
    triton_full = triton_attention(head_dim[0]);
    triton_window = triton_attention(head_dim[1]);
    reads_full = triton_reads(head_dim[0]);
    reads_window = triton_reads(head_dim[1]);
    least_full_s = layers[0] * kTritonReads;
    least_window_s = layers[1] * kTritonReads;
  }
  if (request.stack == model::Stack::vllm_tpu && window > 0) window_span = PagedAttentionTime::walked(window) / window;
  pair_full.best = flops[0] / peak;
  pair_window.best = flops[1] / peak;
  if (!engine) return;
  const double keys = costs.query_keys + sizes::kQueries / 2.0;  // a block of queries sees those of all
  query.best = (flops[0] + flops[1]) * keys / peak;
  if (chip.vector_ops) query.best += heads * costs.query_ops / chip.vector_ops.value;
  threads_per_kv = request.engine ? request.engine->threads / std::max(1.0, fewest_kv_heads) : 0;
}

// Sets everything that depends on the type of the cache or on the most sequences.
void ServeStepModel::Impl::set_cache(const LocalModel& m) {
  request.kv = m.request->kv;
  request.serve.max_num_seqs = m.request->serve.max_num_seqs;
  most_requests = std::max(kFirstRequests, request.serve.max_num_seqs);
  set_reads(m);
  set_groups(m);
}

void ServeStepModel::Impl::set_reads(const LocalModel& m) {
  double read[2] = {};  // layers that see everything, sliding ones; those that borrow keys and values read them, too
  for (const LayerKind& k : m.kinds) read[slides(k)] += k.count * 2 * k.kv() * bytes_of(request.kv);
  kv_full.best = read[0] / bandwidth;
  kv_window.best = read[1] / bandwidth;
  if (request.stack == model::Stack::vllm_tpu) paged.set(m);
}

// The collectives of decoding give the sums for a number of tokens; those of sampled rows have a curve of their own.
void ServeStepModel::Impl::add_sums(const LocalModel& m) {
  if (request.mesh.devices() == 1) return;
  StepCollectives sums([&](std::int64_t count) {
    mesh::StepShape shape =
        complete_step_shape({.work = mesh::StepKind::decode, .rows = count * ways, .tokens = 1}, request);
    shape.logit_bytes = 2;
    return step_collectives(request, m.config, m.placement, shape);
  });
  Curve::fill(token_sums, request_sums, [&](std::int64_t count) {
    double of_tokens = 0, of_requests = 0;
    for (const mesh::Collective& c : sums.of(std::max<std::int64_t>(1, count))) {
      const double stands = c.layer >= 0 ? m.layers_represented[static_cast<size_t>(c.layer)] : 1;
      (c.cause == mesh::Cause::logits ? of_requests : of_tokens) +=
          stands * static_cast<double>(c.calls) * sum_seconds(m, c);
    }
    return std::pair(of_tokens, of_requests);
  });
}

double ServeStepModel::Impl::sum_seconds(const LocalModel& m, const mesh::Collective& c) const {
  const Efficiencies& e = request.efficiencies;
  const double listed = collective_value(c, m.layout, request.target, e);
  if (listed <= 0) return 0;
  if (request.target.chip.vendor != hardware::Vendor::gpu) return listed + e.sum_s.value;
  if (static_cast<double>(c.full.value) > kOwnSums) return listed;
  const double link = request.target.chip.link_bandwidth.value * e.collectives.value;
  const double rounds = std::log2(static_cast<double>(c.group));
  return std::min(listed, rounds * e.sum_s.value + static_cast<double>(c.moved.value) / link);
}

void ServeStepModel::Impl::set_groups(const LocalModel& m) {
  const double copies =
      static_cast<double>(request.mesh.devices()) / ways;  // of a token's KV: heads are split over them
  kv.capacity = serve_totals(m)[MemoryCategory::kv_cache] * request.mesh.devices();
  kv.groups.clear();
  for (const LayerKind& k : m.kinds) {
    if (!k.shape.has_k) continue;
    const int kept = slides(k) && request.sliding_window_kv ? window : 0;
    auto group = std::find_if(kv.groups.begin(), kv.groups.end(), [&](const Kv::Group& g) { return g.window == kept; });
    if (group == kv.groups.end()) group = kv.groups.insert(kv.groups.end(), {0, kept, 0});
    group->layers += k.count;
    group->bytes_per_token += k.count * 2 * k.kv() * bytes_of(request.kv) * copies;
  }
}

ServeStepModel::ServeStepModel(const Request& request) {
  if (request.work != Work::serve) throw Error("PLAN-WORK", "not a serving workload", {.expected = "serve"});
  check_request(request);
  Request ordered = request;
  ordered.mesh = canonical_order(std::move(ordered.mesh));
  impl_ = std::make_unique<Impl>(local_model(ordered, mesh::ShardingUse::sampling));
}

ServeStepModel::ServeStepModel(const LocalModel& model) : impl_(std::make_unique<Impl>(model)) {}
ServeStepModel::ServeStepModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ServeStepModel::~ServeStepModel() = default;
ServeStepModel::ServeStepModel(ServeStepModel&&) noexcept = default;

ServeStepModel ServeStepModel::with(const Efficiencies& efficiencies) const {
  const Efficiencies& now = impl_->request.efficiencies;
  if (efficiencies.sum_s.value != now.sum_s.value || efficiencies.collectives.value != now.collectives.value) {
    Request r = impl_->request;
    r.efficiencies = efficiencies;
    return ServeStepModel(r);
  }
  auto copy = std::make_unique<Impl>(*impl_);
  copy->set(efficiencies);
  return ServeStepModel(std::move(copy));
}

void ServeStepModel::set_cache(const LocalModel& model) {
  impl_->set_cache(model);
}

int ServeStepModel::window() const {
  return impl_->window;
}

model::Stack ServeStepModel::stack() const {
  return impl_->request.stack;
}

int ServeStepModel::replicas() const {
  return impl_->ways;
}

double ServeStepModel::request_seconds() const {
  return impl_->request.efficiencies.request_s.value;
}

double ServeStepModel::tokenize_seconds() const {
  return impl_->request.efficiencies.token_s.value;
}

const ServeStepModel::Kv& ServeStepModel::kv() const {
  return impl_->kv;
}

double ServeStepModel::seconds(const StepLoad& load) const {
  const Impl& i = *impl_;
  const std::int64_t tokens = i.tokens(load), requests = i.requests(load);
  if (tokens <= 0) return 0;
  const auto t = static_cast<double>(tokens), r = static_cast<double>(requests);
  const double device_s = i.step_s + r * i.sequence_s + i.sampled(r) * i.sampled_row_s + i.products(t) +
                          i.experts(static_cast<double>(i.own_tokens(load)), t) + i.head(r) +
                          i.off_chip(t) * i.traffic_s + i.reads(load, &Efficiency::value) +
                          (load.prefill_pairs * i.pair_full_s + i.window_pairs(load) * i.pair_window_s +
                           static_cast<double>(load.prefill_tokens) * i.query_s) *
                              i.prompt_share(load) +
                          i.token_sums(tokens) + i.request_sums(requests);
  return load.prefill_tokens > 0 ? std::max(device_s, i.prompt_host_s + r * i.sequence_s) : device_s;
}

ServeStepModel::Parts ServeStepModel::parts(const StepLoad& load) const {
  const Impl& i = *impl_;
  Parts p;
  p.padded_tokens = i.tokens(load);
  p.padded_requests = static_cast<int>(i.requests(load));
  if (p.padded_tokens <= 0) return p;
  const Efficiencies& e = i.request.efficiencies;
  const double t = static_cast<double>(p.padded_tokens), r = p.padded_requests;
  // Products that decoding alone would need count as decoding, the rest as prefill.
  StepLoad alone{.decoding = load.decoding};
  const double decoding = load.prefill_tokens > 0 ? static_cast<double>(i.tokens(alone)) : t;
  const auto beyond = [&](const Rate& weights, const Rate& each, double n, double before) {
    const double weight = weights.seconds();
    const double seconds = std::max(weight, n * each.seconds()) - std::max(weight, before * each.seconds());
    return each.estimate(each.seconds() > 0 ? seconds / each.seconds() : 0);
  };
  const double own = static_cast<double>(i.own_tokens(load)),
               own_decoding = load.prefill_tokens > 0 ? static_cast<double>(i.own_tokens(alone)) : own;
  const Estimate experts = i.experts_estimate(own_decoding, decoding),
                 all_experts = load.prefill_tokens > 0 ? i.experts_estimate(own, t) : experts;
  p.base = 1 * e.step_s + i.layers() * e.layer_s + i.weights.estimate(1) + i.head_weights.estimate(1) + experts;
  p.base.formula = "host and dispatch + gaps between kernels + weights / (bandwidth x share)";
  if (i.expert_s > 0)
    p.base.formula += "; of the experts " + number_text(i.experts_read(own_decoding, decoding), 3) + " of " +
                      std::to_string(i.request.model.experts) +
                      " in a layer, as many as its tokens are expected to choose";
  p.base.inputs =
      (labelled(seconds_text(i.step_s), "host and gaps") + labelled(seconds_text(i.weights.seconds()), "layers") +
       labelled(seconds_text(i.head_weights.seconds()), "output matrix") +
       labelled(seconds_text(experts.value), "experts"))
          .text;
  p.base.source = i.weights.share.source;
  const Estimate each = r * e.sequence_s, traffic = i.traffic.estimate(i.off_chip(decoding));
  const Estimate products = beyond(i.weights, i.token, decoding, 0) + beyond(i.head_weights, i.head_row, r, 0);
  const Estimate sampling = i.sampled_row.estimate(i.sampled(r));
  p.sequences = each + products + traffic + sampling;
  p.sequences.formula = "sequences x (seconds each + their products beyond the reads of the weights)";
  if (sampling.value > 0) p.sequences.formula += " + passes over their logits in sampling";
  p.sequences.inputs =
      (labelled(seconds_text(each.value), number_text(r) + " sequences") +
       labelled(seconds_text(products.value), "products") + labelled(seconds_text(traffic.value), "activations") +
       labelled(seconds_text(sampling.value), "sampling"))
          .text;
  p.sequences.source = e.sequence_s.source;
  const Efficiency& share = i.kv_full.share;
  p.kv_reads = {.value = i.reads(load, &Efficiency::value),
                .low = i.reads(load, &Efficiency::high),
                .high = i.reads(load, &Efficiency::low),
                .origin = share.origin,
                .source = share.source};
  p.kv_reads.formula = i.paged ? "KV bytes read / (bandwidth x share), or blocks of the kernel x their products"
                               : "KV bytes read / (bandwidth x share)";
  if (i.paged && load.decoding > 0)
    p.products_bound_reads = i.paged.is_bound_by_products(load.read_tokens / load.decoding, share.value);
  p.kv_reads.formula += "; " + counted(count_text(load.read_tokens), "token") + " in layers that see everything, " +
                        count_text(load.read_window_tokens) + " in sliding ones";
  const Estimate prompts = beyond(i.weights, i.token, t, decoding),
                 moved = i.traffic.estimate(i.off_chip(t) - i.off_chip(decoding));
  const double of_prompts = i.prompt_share(load);
  const Estimate attention = i.pair_full.estimate(load.prefill_pairs * of_prompts) +
                             i.pair_window.estimate(i.window_pairs(load) * of_prompts) +
                             i.query.estimate(static_cast<double>(load.prefill_tokens) * of_prompts);
  p.prefill = prompts + (all_experts - experts) + moved + attention;
  p.prefill.formula = "prompt tokens x FLOP / (peak x share) + attention";
  p.prefill.inputs =
      (labelled(seconds_text(prompts.value + all_experts.value - experts.value), "products") +
       labelled(seconds_text(moved.value), "activations") + labelled(seconds_text(attention.value), "attention"))
          .text;
  p.prefill.source = i.token.share.source;
  const double sums = i.token_sums(p.padded_tokens) + i.request_sums(p.padded_requests);
  p.communication = {
      .value = sums,
      .low = sums * e.collectives.value / e.collectives.high,
      .high = sums * 1.5,
      .origin = e.sum_s.origin,
      .formula = "sums between the devices after attention and MLP, logits, of " + counted(p.padded_tokens, "token"),
      .source = e.sum_s.source};
  const double whole = seconds(load);
  // The host's time beyond that of the device.
  const double rest = whole - (p.base.value + p.sequences.value + p.kv_reads.value + p.prefill.value + sums);
  if (load.prefill_tokens > 0 && rest > 1e-9) {
    const Efficiency& host = e.prompt_layer_s;
    p.prefill += Estimate{.value = rest, .low = 0, .high = rest * host.high / host.value, .origin = host.origin};
    p.prefill.formula = "prompt tokens x FLOP / (peak x share) + attention, at least what the host takes for the step";
    p.prefill.source = host.source;
  }
  p.total = p.base + p.sequences + p.kv_reads + p.prefill + p.communication;
  p.total.value = whole;  // the sum but for its rounding
  p.total.formula = "base + sequences + KV reads + prefill + sums between devices, of " +
                    counted(p.padded_tokens, "token") + " and " + counted(p.padded_requests, "request") +
                    (i.buckets == Buckets::none ? "" : " (buckets)");
  p.total.inputs = (seconds_text(p.base.value) + seconds_text(p.sequences.value) + seconds_text(p.kv_reads.value) +
                    seconds_text(p.prefill.value) + seconds_text(p.communication.value))
                       .text;
  p.total.source = i.request.calibrated.empty() ? i.request.profile.source : i.request.calibrated;
  return p;
}

}  // namespace mw::plan
