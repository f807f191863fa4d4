// SPDX-License-Identifier: Apache-2.0
// The rows of the parameter table that plans read and runs on this machine do not.
#include "core/experiment/parameter_rows.h"

namespace mw::experiment::rows {
namespace {

Parameter free_list(std::string key, std::string label, std::string help) {
  return row(list, std::move(key), std::move(label), Json::array(), std::move(help), kAdvanced);
}
Parameter numbers(std::string key, std::string label, std::string unit, std::vector<int> fallback, std::string help) {
  Parameter p = row(list, std::move(key), std::move(label), fallback, std::move(help), kAdvanced);
  p.unit = std::move(unit);
  return p;
}

}  // namespace

Rows price_rows() {
  return {
      text_row("price.region", "Price region", "",
               "Region whose price a plan takes; empty: the chip's first in the list", kAdvanced),
      text_row("price.class", "Price class", "", "on demand, spot, flex, calendar, 1y or 3y; empty: on demand",
               kAdvanced),
      real_row("price.usd_per_chip_hour", "Own price", "USD per chip-hour", 0, {0, 1e6},
               "Price in place of the list's; 0: the list's", kAdvanced),
  };
}

Rows sharding_rows() {
  return {
      choice_row("sharding.preset", "Sharding", {"auto", "tunix", "megatron", "fsdp", "replicated"},
                 "How tensors are split over the mesh; auto: as the stack does", kAdvanced),
      free_list("sharding.overrides", "Sharding overrides",
                "Specs of single tensors, first match wins: q_einsum = (tp, fsdp, -)"),
      free_list("sharding.places", "Axis places", "Grid dimensions an axis is to lie on: tp = 0, 1"),
  };
}

Rows length_rows() {
  return {
      real_row("data.mean_len", "Mean row", "tokens", 0, {0, 1048576},
               "Mean length where there is no histogram; 0: every row is as long as the longest", kAdvanced),
      int_row("data.rows", "Rows", "rows", 0, {0, 1e12}, "Rows of the data where there is no histogram", kAdvanced),
      choice_row(
          "data.padding", "Padding", {"auto", "max_len", "longest"},
          "What a planned step pads rows to; auto: max_len where shapes are compiled, else the longest of the batch",
          kAdvanced),
  };
}

Rows stack_rows() {
  return {
      choice_row("train.stack", "Software",
                 {"auto", "engine", "tunix", "torchax", "maxtext", "trl-fsdp", "torchtune", "torchtitan", "megatron"},
                 "What trains on the target; auto: tunix on TPU, trl-fsdp on GPU, the engine here", kAdvanced),
      choice_row("train.attention", "Attention", {"auto", "materialised", "fused"},
                 "Scores in memory or in a fused kernel, for plans; auto: as the software does", kAdvanced),
      choice_row("train.adapter_dtype", "Adapters", {"auto", "bf16", "f32"},
                 "Type of adapters and their gradients in a plan; auto: as the software does", kAdvanced),
      choice_row("train.moment_dtype", "Moments", {"auto", "bf16", "f32"},
                 "Type of Adam's moments in a plan; auto: as the software does", kAdvanced),
  };
}

Rows serve_rows() {
  return {
      choice_row("serve.stack", "Software", {"auto", "vllm-tpu", "vllm-gpu"}, "What serves on the target", kAdvanced),
      int_row("serve.max_num_seqs", "Sequences", "sequences", 64, {1, 65536}, "Most requests in one decode step",
              kAdvanced),
      int_row("serve.max_model_len", "Longest request", "tokens", 4096, {1, 1048576},
              "Prompt and answer of a request at most", kAdvanced),
      int_row("serve.max_num_batched_tokens", "Batched tokens", "tokens", 2048, {1, 1048576},
              "Most tokens in one step, prefill included", kAdvanced),
      choice_row("serve.kv_dtype", "KV cache", {"bf16", "fp8", "f32", "int8"}, "Type of keys and values in the cache",
                 kAdvanced),
      row(flag, "serve.sliding_window_kv", "Window caches", true,
          "Sliding layers keep their window only (off: every layer keeps every token)", kAdvanced),
      row(flag, "serve.async_scheduling", "Async scheduling", false,
          "The host works out the next step while one runs, and sees requests a step later (vLLM's default by 0.19)",
          kAdvanced),
      real_row("serve.memory_utilisation", "Memory used", "of capacity", 0.9, {0.05, 1},
               "Share of the memory a server may fill", kAdvanced),
      int_row("serve.input_len", "Prompt", "tokens", 1024, {1, 1048576}, "Prompt of the requests a plan counts with",
              kAdvanced),
      int_row("serve.output_len", "Answer", "tokens", 512, {1, 1048576}, "Answer of the requests a plan counts with",
              kAdvanced),
      text_row("serve.target", "Served on", "", "Target that serves the tuned model, for the cost of both together",
               kAdvanced),
      real_row("serve.usd_per_chip_hour", "Own price", "USD per chip-hour", 0, {0, 1e6},
               "Price of the serving target in place of the list's; 0: the list's", kAdvanced),
      numbers("serve.hours", "Hours", "h", {1, 8, 24}, "Hours of serving for which training and serving are added up"),
  };
}

Rows measured_rows() {
  return {
      real_row("measured.seconds_per_step", "Seconds per step", "s", 0, {0, 1e9},
               "What a run elsewhere measured, to compare the plan with; 0: nothing", kAdvanced),
      real_row("measured.hours", "Hours", "h", 0, {0, 1e9}, "Wall time that a run elsewhere measured; 0: nothing",
               kAdvanced),
      numbers("measured.max_lens", "Possible lengths", "tokens", {},
              "Sequence lengths to compare with the measurement where its own is not certain"),
      text_row("measured.source", "Source", "", "Where the measurement is from", kAdvanced),
  };
}

}  // namespace mw::experiment::rows
