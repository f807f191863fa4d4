// SPDX-License-Identifier: Apache-2.0
// Constants that are not in the catalogue name their source: AC ai-dynamo/aiconfigurator, ML
// stas00/ml-engineering, TR AI-Hypercomputer/tpu-recipes, VD microsoft/vidur, XB xbill9/gemma4-dev. None of them was
// fitted to a step time, in particular not to those that tests predict.
#include "core/plan/request/efficiencies.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace mw::plan {
namespace {

using hardware::Vendor;

Efficiency of(const hardware::Figure& figure, Efficiency otherwise) {
  if (!figure) return otherwise;
  const bool measured = figure.kind == hardware::Provenance::measured;
  return {.value = figure.value,
          .low = figure.low > 0 ? figure.low : figure.value,
          .high = figure.high > 0 ? figure.high : figure.value,
          .origin = measured ? Origin::measured : Origin::transferred,
          .source = figure.source};
}

// Shares of the peak that large products reach on the chips on which servers were measured (chips.json).
constexpr double kH100Matmul = 0.80, kV6eMatmul = 0.90;
// A server's share on another chip: in proportion to what large products reach there.
Efficiency of_large(const hardware::Chip& chip, double measured_there, Efficiency e) {
  if (!chip.matmul_efficiency || chip.matmul_efficiency.value == measured_there) return e;
  const double ratio = chip.matmul_efficiency.value / measured_there;
  e.value *= ratio, e.low *= ratio, e.high = std::min(1.0, e.high * ratio);
  e.source += ", times what large products reach on this chip: " + chip.matmul_efficiency.source;
  return e;
}

constexpr double kMiB = 1048576.0, kGiB = 1073741824.0;

bool serves_on_gpus(model::Stack stack) {
  return stack == model::Stack::vllm_gpu || stack == model::Stack::tensorrt_llm || stack == model::Stack::sglang;
}
// scaled_dot_product_attention, which is FlashAttention-2 for bf16 without masks (aten/src/ATen/native/transformers/
// cuda/flash_attn); Megatron-LM uses cuDNN's kernels.
bool runs_pytorch_attention(model::Stack stack) {
  return stack == model::Stack::torchtitan || stack == model::Stack::torchtune || stack == model::Stack::trl_fsdp;
}
bool serves_on_tpus(model::Stack stack) {
  return stack == model::Stack::vllm_tpu || stack == model::Stack::jetstream;
}

// A single user of vLLM on TPUs, and requests that follow each other on GPUs. scripts/tensorrt-llm-steps.py derives the
// value of TensorRT-LLM.
Efficiency request_overhead(model::Stack stack) {
  if (!serves(stack)) return {0, 0, 0, Origin::floor, "no server"};
  if (stack == model::Stack::tensorrt_llm)
    return {6e-3, 4e-3, 8e-3, Origin::transferred,
            "TensorRT-LLM 1.0 on H100: TTFT of closed loops of 1,024 to 4,096 tokens with up to 64 users (29 cells of "
            "ACT that are not held out)"};
  if (serves_on_gpus(stack))
    return {1.2e-2, 6.7e-3, 2e-2, Origin::transferred,
            "vLLM 0.12 behind a router on H100: TTFT of closed loops of 1,024 and 4,096 tokens (42 cells of AC that "
            "are not held out, see measurements.json)"};
  return {6.7e-3, 5.6e-3, 7.9e-3, Origin::transferred,
          "single users of vLLM wait this long for a first token beside a step: v6e-1 11.6 - 4.7, 15.2 - 8.9, "
          "27.6 - 22.0 ms, v5e-1 15.9 - 8.05 ms (XB, prompts of 128 tokens)"};
}

// A vLLM server tokenizes beside its event loop, prompts that arrive together at once (vllm/utils/async_utils.py,
// AsyncMicrobatchTokenizer). Fitted to cells of AC that are not held out: see the note of measurements.json.
Efficiency tokenizer_overhead(model::Stack stack) {
  if (!serves(stack)) return {0, 0, 0, Origin::floor, "no server"};
  if (stack == model::Stack::tensorrt_llm)
    return {1e-6, 0, 3e-6, Origin::transferred, "TensorRT-LLM on H100: 0-3 µs a prompt token (ACT)"};
  if (serves_on_gpus(stack)) return {3e-6, 1e-6, 4e-6, Origin::transferred, "vLLM on H100: 1-4 µs a prompt token (AC)"};
  return {1.5e-6, 1e-6, 3e-6, Origin::transferred, "vLLM on H100 without a router: 1-3 µs a prompt token (AC)"};
}

// The PyTorch backend of TensorRT-LLM replays CUDA graphs of batches that only decode
// (tensorrt_llm/_torch/pyexecutor/cuda_graph_runner.py); with a prompt the host launches each kernel. vLLM compiles
// these steps, and SGLang's show no such floor down to 0.47 ms a layer. scripts/tensorrt-llm-steps.py derives the
// value.
Efficiency prompt_layer_overhead(model::Stack stack) {
  if (stack != model::Stack::tensorrt_llm) return {0, 0, 5e-4, Origin::floor, "hidden behind the device's work"};
  return {6.3e-4, 5.9e-4, 6.6e-4, Origin::transferred,
          "TensorRT-LLM 1.0 on H100: 24 cells of ACT that are not held out, Qwen3-32B and Llama-3.1-8B with prompts of "
          "1,024 tokens on 4 and 8 GPUs: 0.59 and 0.66 ms a layer, beside the seconds per sequence"};
}

// A server quantises the inputs of each product when it multiplies.
Efficiency fp8_products(model::Stack stack) {
  if (!serves(stack))
    return {1.0, 1.0, 1.0, Origin::floor, "products in fp8 as near to their limit as others; no published figure"};
  return {
      0.85, 0.74, 0.95, Origin::transferred,
      "quantising the inputs leaves 74-78 % of 680-956 TFLOP/s at 6,144 columns and 95 % at 43,008 (Llama 3.1 8B and "
      "Gemma 4 31B on H100, vllm pull requests 17126 and 49363)"};
}

Efficiency runtime_of(const hardware::Target& target, model::Stack stack) {
  if (target.chip.vendor == Vendor::tpu) {
    if (stack == model::Stack::vllm_tpu)
      return {836e6, 836e6, 1.2e9, Origin::transferred,
              "compiled programs of a vLLM server on v5e need at least 836 MB outside its cap (XB)"};
    return {64 * kMiB, 0, 836e6, Origin::floor,
            "generated code; what the runtime reserves is outside its bytes_limit already"};
  }
  const double context = 0.75 * kGiB;  // CUDA context and kernels: 0.5-1 GiB (ML)
  if (target.devices() == 1)
    return {context, 0.47 * kGiB, kGiB, Origin::transferred, "CUDA context and kernels 0.5-1 GiB (ML)"};
  const double nccl = serves_on_gpus(stack) ? 367e6 : 1.45 * kGiB;  // 342-392 MB (AC); +1.45 GiB (ML)
  return {context + nccl, 0.47 * kGiB + 342e6, kGiB + 1.6 * kGiB, Origin::transferred,
          "CUDA context 0.5-1 GiB, NCCL 0.34-1.6 GiB (ML, AC, NCCL issue 864)"};
}

Efficiency step_of(Vendor vendor, model::Stack stack) {
  if (serves_on_tpus(stack))
    return {
        4.5e-3, 3e-3, 6e-3, Origin::transferred,
        "fixed part of vLLM's decode step on 2-8 H100: 3-6 ms beside the weights (AC); TPU servers schedule between "
        "steps unless started with --async-scheduling"};
  if (serves_on_gpus(stack))
    return {2e-3, 5e-4, 6e-3, Origin::transferred,
            "vLLM's decode step on 2-8 H100 has 3-6 ms beside the weights (AC), sums between the GPUs among them"};
  if (vendor == Vendor::tpu)
    return {2e-3, 0, 1e-2, Origin::floor, "dispatch of one compiled program; no published figure"};
  return {5e-3, 0, 2e-2, Origin::floor, "host work between steps; no published figure"};
}

}  // namespace

Estimate operator*(double n, const Efficiency& each) {
  return {.value = n * each.value,
          .low = n * each.low,
          .high = n * each.high,
          .origin = each.origin,
          .source = each.source};
}

Estimate operator/(double best, const Efficiency& share) {
  const auto at = [&](double reached) { return reached > 0 ? best / reached : 0; };
  return {.value = at(share.value),
          .low = at(share.high),
          .high = at(share.low),
          .origin = share.origin,
          .source = share.source};
}

model::Stack parse_stack(std::string_view text) {
  if (const auto stack = model::parse<model::Stack>(text)) return *stack;
  std::string all;
  for (const std::string_view name : kEnumNames<model::Stack>) all += ", " + std::string(name);
  throw Error("STACK", "unknown software stack",
              {.place = "train.stack", .found = std::string(text), .expected = "auto" + all});
}

const std::vector<Efficiencies::Named>& Efficiencies::names() {
  static const std::vector<Named> kNames{
      {"matmul", &Efficiencies::matmul, "share of the bf16 peak in large products"},
      {"experts", &Efficiencies::experts, "share of matmul that the grouped products of experts reach in training"},
      {"fp8", &Efficiencies::fp8,
       "share of what large fp8 products reach that a server's do, with quantising their inputs"},
      {"attention", &Efficiencies::attention, "share of the bf16 peak inside fused attention"},
      {"memory", &Efficiencies::memory, "share of memory bandwidth"},
      {"collectives", &Efficiencies::collectives, "share of the bandwidth of the link model"},
      {"overlap", &Efficiencies::overlap, "share of weight gathers and gradient sums that may hide"},
      {"overlap_network", &Efficiencies::overlap_network, "share of these between nodes or slices that may hide"},
      {"overlap_sums", &Efficiencies::overlap_sums, "share of partial sums that may hide"},
      {"kernel_s", &Efficiencies::kernel_s, "unhidden seconds per kernel"},
      {"kv_reads", &Efficiencies::kv_reads, "share of memory bandwidth in reads of a server's KV cache"},
      {"triton_reads", &Efficiencies::triton_reads,
       "share of a published bandwidth of Triton kernels that reads of the KV cache reach at heads beyond 256"},
      {"sampling", &Efficiencies::sampling, "share of memory bandwidth in passes over logits for top-k and top-p"},
      {"sum_s", &Efficiencies::sum_s, "fixed seconds of a server's sum over devices, in addition to its bytes"},
      {"step_s", &Efficiencies::step_s, "seconds per step in addition to the devices' work"},
      {"layer_s", &Efficiencies::layer_s, "seconds per layer of a server's step between the kernels of its graph"},
      {"sequence_s", &Efficiencies::sequence_s, "seconds per sequence of a decode step"},
      {"request_s", &Efficiencies::request_s, "seconds until a server may schedule a request"},
      {"token_s", &Efficiencies::token_s, "seconds of a server's tokenizer per prompt token"},
      {"prompt_layer_s", &Efficiencies::prompt_layer_s, "host seconds per layer in a server's step with prompts"},
      {"compile_s", &Efficiencies::compile_s, "seconds of compilation per layer"},
      {"runtime_bytes", &Efficiencies::runtime_bytes, "bytes held by runtime, context and communicators"},
      {"fragmentation", &Efficiencies::fragmentation, "share held beyond the live buffers"}};
  return kNames;
}

Efficiencies default_efficiencies(const hardware::Target& target, model::Stack stack) {
  const hardware::Chip& chip = target.chip;
  const bool tpu = chip.vendor == Vendor::tpu;
  Efficiencies e;
  e.matmul = of(chip.matmul_efficiency, {tpu ? 0.86 : 0.80, tpu ? 0.80 : 0.77, tpu ? 0.90 : 0.87, Origin::transferred,
                                         tpu ? "large matmuls on v6e 90 %, TPU7x 83 % (TR)"
                                             : "large matmuls on A100 87 %, H100 80 %, B200 78 % (ML)"});
  e.experts = {1.0, 0.4, 1.0, Origin::floor, "grouped products as fast as others; no published figure"};
  e.fp8 = fp8_products(stack);
  e.memory = of(chip.memory_efficiency, {0.82, 0.80, 0.87, Origin::transferred,
                                         "copies on v6e 83 %, TPU7x 87 % (TR); memory-bound kernels 80 % (AC)"});
  e.attention = tpu ? Efficiency{0.40, 0.30, 0.55, Origin::transferred, "fused attention on TPU; no published ceiling"}
                    : Efficiency{0.50, 0.35, 0.73, Origin::transferred,
                                 "FlashAttention-2 on A100 up to 73 %, on H100 about 35 % (their papers)"};
  if (runs_pytorch_attention(stack)) e.attention = of(chip.attention_efficiency, e.attention);
  e.collectives = tpu ? Efficiency{0.89, 0.85, 0.95, Origin::transferred,
                                   "TPU7x all-gather reaches 89 % of its links beside a fixed cost (TR, derived)"}
                      : Efficiency{0.80, 0.75, 0.85, Origin::transferred,
                                   "NCCL all-gather on H200 361 of 450 GB/s (ML); a measured curve replaces it"};
  e.overlap = {1.0, 0.5, 1.0, Origin::floor, "gathers are prefetched while the layer before computes"};
  e.overlap_network = {1.0, 0.0, 1.0, Origin::floor, "as within a node or slice; no published figure"};
  e.overlap_sums = {0.0, 0.0, 0.5, Origin::floor, "a layer waits for its partial sums"};
  e.kernel_s = tpu ? Efficiency{0, 0, 1e-6, Origin::floor, "one program: no launches"}
                   : Efficiency{3e-6, 1e-6, 5e-6, Origin::transferred, "3 µs per memory-bound kernel (AC)"};
  e.kv_reads = tpu ? Efficiency{0.50, 0.30, 0.80, Origin::transferred, "ragged paged attention; no published ceiling"}
                   : Efficiency{0.80, 0.69, 1.00, Origin::transferred, "vLLM on H100: 69-100 % of the peak (AC)"};
  e.triton_reads = {1.0, 0.4, 1.0, Origin::transferred, "vLLM's kernel on MI325X"};
  e.sampling = e.memory;
  e.sum_s = tpu ? Efficiency{1.3e-5, 1e-6, 1.5e-5, Origin::transferred, "TPU7x all-gather: 13-15 µs fixed (TR)"}
                : Efficiency{7e-6, 5e-6, 1.2e-5, Origin::transferred,
                             "small all-reduce of a DGX pair 7 µs, of eight 32-37 µs (VD): grows with their logarithm"};
  e.step_s = step_of(chip.vendor, stack);
  e.layer_s = serves_on_gpus(stack)
                  ? Efficiency{1e-5, 0, 6.4e-5, Origin::floor,
                               "about ten kernels of a layer, 1 µs between two of a graph; calibrated per chip"}
                  : Efficiency{0, 0, 0, Origin::floor, "one program"};
  e.sequence_s = {3.8e-5, 0, 6.1e-5, Origin::transferred, "vLLM on H100: 0.018-0.061 ms per sequence (AC)"};
  e.request_s = request_overhead(stack);
  e.token_s = tokenizer_overhead(stack);
  e.prompt_layer_s = prompt_layer_overhead(stack);
  e.compile_s = tpu ? Efficiency{5.5, 3, 8, Origin::transferred,
                                 "3-8 min of compilation for 60 unrolled layers (arXiv 2605.25645)"}
                    : Efficiency{stack == model::Stack::torchtitan ? 1.0 : 0.0, 0, 2, Origin::floor, "eager: none"};
  e.runtime_bytes = runtime_of(target, stack);
  e.fragmentation = {0.065, 0.03, 0.10, Origin::transferred,
                     "3-10 % where sizes vary, about 0 where they do not (an estimate); middle taken"};
  // Serving engines reach less in prefill (AC): short products, many kernels; 0.57 of peak at tp 2, 0.38 at tp 8.
  if (serves_on_gpus(stack))
    e.matmul =
        of_large(chip, kH100Matmul,
                 {0.57, 0.38, 0.66, Origin::transferred, "prefill of Qwen3-32B, Llama-8B and -70B on H100 (AC)"});
  if (serves_on_tpus(stack))
    e.matmul = of_large(chip, kV6eMatmul,
                        {0.50, 0.30, 0.80, Origin::transferred, "as vLLM on GPUs; no clean figure of its own"});
  return e;
}

Efficiency async_step_overhead() {
  return {5e-4, 0, 2e-3, Origin::floor, "async scheduling: dispatch of one program"};
}

double kv_share(const EngineCosts& costs, double bytes) {
  const auto& points = costs.kv_reads;
  if (points.empty()) return 1;
  const auto above = std::lower_bound(points.begin(), points.end(), std::pair(bytes, 0.0));
  if (above == points.begin()) return points.front().second;
  if (above == points.end()) return points.back().second;
  const auto& [less, share_of_less] = above[-1];
  const auto& [more, share_of_more] = *above;
  return share_of_less * std::pow(share_of_more / share_of_less, std::log(bytes / less) / std::log(more / less));
}

}  // namespace mw::plan
