// SPDX-License-Identifier: Apache-2.0
// Rows of the parameter table that only planning uses; runs on this machine ignore them.
#include "core/experiment/parameter_rows.h"

namespace mw::experiment::rows {
using model::DType;
using model::Stack;

Rows price_rows() {
  return {
      text_row("price.region", &PriceSection::region, "Price region", "",
               "Region of the price to plan with; empty: the chip's first region in the price list", kAdvanced),
      text_row("price.class", &PriceSection::price_class, "Price class", "",
               "on demand, spot, flex, calendar, 1y or 3y; empty: on demand", kAdvanced),
      real_row("price.usd_per_chip_hour", &PriceSection::usd_per_chip_hour, "Custom price", "USD per chip-hour", 0,
               {0, 1e6}, "Price to use instead of the list price; 0: list price", kAdvanced),
  };
}

Rows sharding_rows() {
  return {
      choice_row("sharding.preset", &ShardingSection::preset, "Sharding",
                 "Sharding rules of the tensors; auto: the default of the software stack", kAdvanced),
      free_list("sharding.overrides", &ShardingSection::overrides, "Sharding overrides", "", Json::array(),
                "Specs of single tensors, first match wins: q_einsum = (tp, fsdp, -)"),
      free_list("sharding.places", &ShardingSection::places, "Axis places", "", Json::array(),
                "Physical grid dimensions to map an axis to: tp = 0, 1"),
  };
}

Rows length_rows() {
  return {
      real_row("data.mean_len", &DataSection::mean_len, "Mean row", "tokens", 0, {0, 1048576},
               "Mean row length if there is no histogram; 0: every row has the maximum length", kAdvanced),
      int_row("data.rows", &DataSection::rows, "Rows", "rows", 0, {0, 1e12},
              "Number of data rows if there is no histogram", kAdvanced),
      choice_row("data.padding", &DataSection::padding, "Padding",
                 "Length to which a planned step pads rows; auto: max_len with compiled shapes, else the longest row "
                 "of the batch",
                 kAdvanced),
  };
}

Rows stack_rows() {
  return {
      choice_row("train.stack", &TrainSection::stack, "Software",
                 "Training software on the target; auto: tunix on TPU, trl-fsdp on GPU, the engine on this machine",
                 kAdvanced,
                 {Stack::engine, Stack::tunix, Stack::torchax, Stack::maxtext, Stack::trl_fsdp, Stack::torchtune,
                  Stack::torchtitan, Stack::megatron}),
      choice_row("train.attention", &TrainSection::attention, "Attention",
                 "Attention scores in memory or in a fused kernel, for plans; auto: the default of the software",
                 kAdvanced),
      choice_row("train.adapter_dtype", &TrainSection::adapter_dtype, "Adapters",
                 "Type of adapters and their gradients in a plan; auto: the default of the software", kAdvanced,
                 {DType::bf16, DType::f32}),
      choice_row("train.moment_dtype", &TrainSection::moment_dtype, "Moments",
                 "Type of Adam's moments in a plan; auto: the default of the software", kAdvanced,
                 {DType::bf16, DType::f32}),
  };
}

Rows serve_rows() {
  return {
      choice_row("serve.stack", &ServeSection::stack, "Software", "Serving software on the target", kAdvanced,
                 {Stack::vllm_tpu, Stack::vllm_gpu}),
      int_row("serve.max_num_seqs", &ServeSection::max_num_seqs, "Sequences", "sequences", 64, {1, 65536},
              "Maximum number of requests in one decode step", kAdvanced),
      int_row("serve.max_model_len", &ServeSection::max_model_len, "Longest request", "tokens", 4096, {1, 1048576},
              "Maximum length of a request: prompt and answer", kAdvanced),
      int_row("serve.max_num_batched_tokens", &ServeSection::max_num_batched_tokens, "Batched tokens", "tokens", 2048,
              {1, 1048576}, "Maximum number of tokens in one step, including prefill", kAdvanced),
      choice_row("serve.kv_dtype", &ServeSection::kv_dtype, "KV cache", "Type of keys and values in the cache",
                 kAdvanced, {DType::bf16, DType::fp8, DType::f32, DType::int8}),
      on_row("serve.sliding_window_kv", &ServeSection::sliding_window_kv, "Window caches",
             "Sliding-window layers cache only their window (off: every layer caches every token)", kAdvanced),
      flag_row("serve.async_scheduling", &ServeSection::async_scheduling, "Async scheduling",
               "The host schedules the next step while one runs and sees requests one step later (vLLM's default as of "
               "0.19)",
               kAdvanced),
      real_row("serve.memory_utilisation", &ServeSection::memory_utilisation, "Memory used", "of capacity", 0.9,
               {0.05, 1}, "Share of the device memory that the server may use", kAdvanced),
      int_row("serve.input_len", &ServeSection::input_len, "Prompt", "tokens", 1024, {1, 1048576},
              "Prompt length of the planned requests", kAdvanced),
      int_row("serve.output_len", &ServeSection::output_len, "Answer", "tokens", 512, {1, 1048576},
              "Answer length of the planned requests", kAdvanced),
      text_row("serve.target", &ServeSection::target, "Serving target", "",
               "Target that serves the tuned model, for the combined cost of training and serving", kAdvanced),
      real_row("serve.usd_per_chip_hour", &ServeSection::usd_per_chip_hour, "Custom price", "USD per chip-hour", 0,
               {0, 1e6}, "Price of the serving target instead of the list price; 0: list price", kAdvanced),
      free_list("serve.hours", &ServeSection::hours, "Hours", "h", {1, 8, 24},
                "Hours of serving for which the total cost of training and serving is computed"),
  };
}

Rows measured_rows() {
  return {
      real_row("measured.seconds_per_step", &MeasuredSection::seconds_per_step, "Seconds per step", "s", 0, {0, 1e9},
               "Measured time per step to compare the plan with; 0: not measured", kAdvanced),
      real_row("measured.hours", &MeasuredSection::hours, "Hours", "h", 0, {0, 1e9},
               "Measured wall time to compare the plan with; 0: not measured", kAdvanced),
      free_list("measured.max_lens", &MeasuredSection::max_lens, "Possible lengths", "tokens", Json::array(),
                "Candidate sequence lengths of the measured run, if its length is not known"),
      text_row("measured.source", &MeasuredSection::source, "Source", "", "Source of the measurement", kAdvanced),
  };
}

}  // namespace mw::experiment::rows
