// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/parameter_rows.h"

namespace mw::experiment::rows {
Rows server_rows() {
  return {
      on_row("serve.prefix_cache", &ServeSection::prefix_cache, "Prefix cache",
             "Keep KV blocks of finished prompts and reuse them for prompts with the same prefix (vLLM's default)",
             kAdvanced),
      on_row("serve.chunked_prefill", &ServeSection::chunked_prefill, "Chunked prefill",
             "Split long prompts into chunks that share steps with decoding (off: a prompt is computed in one step)",
             kAdvanced),
      int_row("serve.block_size", &ServeSection::block_size, "Block", "tokens", 16, {1, 1024},
              "Tokens per block of the KV cache", kAdvanced),
      choice_row("serve.policy", &ServeSection::policy, "Order",
                 "First come first served, or by the request's priority", kAdvanced),
      real_row(
          "serve.kv_gib", &ServeSection::kv_gib, "KV cache", "GiB", 0, {0, 65536},
          "Memory for KV blocks when the engine serves; 0: what max_num_seqs requests of full length need, at most "
          "half of what is free",
          kAdvanced),
      int_row("serve.queue", &ServeSection::queue, "Queue", "requests", 256, {0, 1000000},
              "Requests that may wait before the server answers 429", kAdvanced),
      folders_row("serve.adapters", &ServeSection::adapters, "Adapters",
                  "PEFT adapter folders, keyed by the model name in the request", kAdvanced),
  };
}

Rows sweep_rows() {
  return {
      choice_row(
          "sweep.backend", &SweepSection::backend, "Backend",
          "Serving backend: this engine, the cost model of the target, or a server over HTTP; auto: the engine on cpu, "
          "else the model",
          kAdvanced),
      text_row("sweep.url", &SweepSection::url, "Server", "",
               "Base address of an OpenAI-compatible server, e.g. http://127.0.0.1:8000", kAdvanced),
      text_row("sweep.model", &SweepSection::model, "Served model", "",
               "Model name on the server; empty: the server's first model", kAdvanced),
      free_list("sweep.request_rates", &SweepSection::request_rates, "Rates", "requests/s",
                Json::array({1, 2, 4, 8, 16, 32, 64}),
                "Offered request rates, one point per rate and input length; \"inf\": all at once"),
      free_list("sweep.input_lens", &SweepSection::input_lens, "Prompts", "tokens", Json::array({512}),
                "Input lengths to measure"),
      int_row("sweep.output_len", &SweepSection::output_len, "Answer", "tokens", 128, {1, 1048576},
              "Tokens that every request generates", kAdvanced),
      int_row("sweep.num_prompts", &SweepSection::num_prompts, "Requests", "requests", 100, {1, 10000000},
              "Requests per measured point", kAdvanced),
      int_row("sweep.warmups", &SweepSection::warmups, "Warm-up", "requests", 0, {0, 100000},
              "Warm-up requests before each point, not counted in the result", kAdvanced),
      choice_row("sweep.arrival", &SweepSection::arrival, "Arrival",
                 "Open loop at random or equal intervals, all at once, or a closed loop of `concurrency` users",
                 kAdvanced,
                 {serve::Arrival::poisson, serve::Arrival::constant, serve::Arrival::burst, serve::Arrival::closed}),
      real_row("sweep.burstiness", &SweepSection::burstiness, "Burstiness", "", 1, {0.01, 1000},
               "Shape of the gamma-distributed intervals: 1 is Poisson, smaller values are burstier", kAdvanced),
      int_row("sweep.concurrency", &SweepSection::concurrency, "Concurrency", "requests", 0, {0, 1000000},
              "Users of a closed loop; for an open loop, the maximum number in flight (0: no limit)", kAdvanced),
      choice_row("sweep.lengths", &SweepSection::lengths, "Lengths",
                 "Request lengths: all equal, uniform within a spread, or as recorded in a file", kAdvanced),
      real_row("sweep.spread", &SweepSection::spread, "Spread", "", 0, {0, 1},
               "Spread of uniform lengths: 0.2 is plus or minus 20 %", kAdvanced),
      path_row("sweep.workload", &SweepSection::workload, "Workload",
               "Recorded requests: CSV or JSONL with arrival and lengths, or a result", kAdvanced),
      int_row("sweep.shared_prefix", &SweepSection::shared_prefix, "Shared prefix", "tokens", 0, {0, 1048576},
              "Length of the prefix that all prompts share", kAdvanced),
      choice_row("sweep.prompts", &SweepSection::prompts, "Prompts",
                 "New random prompts for every point, or the same prompts, which hit the prefix cache (vLLM bench's "
                 "default seed)",
                 kAdvanced),
      int_row("sweep.repeats", &SweepSection::repeats, "Repeats", "", 1, {1, 100},
              "Measurements of every point, each with another seed", kAdvanced),
      int_row("sweep.seed", &SweepSection::seed, "Seed", "", 1, {0, 9007199254740991.0},
              "Seed of arrivals, lengths and prompts", kAdvanced),
      real_row("sweep.slo_ttft_ms", member(&SweepSection::slo, &serve::Slo::ttft_ms), "SLO: TTFT", "ms", 0, {0, 1e9},
               "Maximum time to the first token; 0: none", kAdvanced),
      real_row("sweep.slo_tpot_ms", member(&SweepSection::slo, &serve::Slo::tpot_ms), "SLO: TPOT", "ms", 0, {0, 1e9},
               "Maximum time per token after the first; 0: none", kAdvanced),
      real_row("sweep.slo_e2e_ms", member(&SweepSection::slo, &serve::Slo::e2e_ms), "SLO: end to end", "ms", 0,
               {0, 1e9}, "Maximum end-to-end time of a request; 0: none", kAdvanced),
  };
}

}  // namespace mw::experiment::rows
