// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/parameter_rows.h"

namespace mw::experiment::rows {
namespace {

Parameter on_row(std::string key, std::string label, std::string help) {
  return row(flag, std::move(key), std::move(label), true, std::move(help), kAdvanced);
}

Parameter folders_row(std::string key, std::string label, std::string help) {
  Parameter p = map_row(std::move(key), std::move(label), std::move(help), kAdvanced);
  p.unit = kFolders;
  return p;
}

Parameter numbers(std::string key, std::string label, std::string unit, Json fallback, std::string help) {
  Parameter p = row(list, std::move(key), std::move(label), std::move(fallback), std::move(help), kAdvanced);
  p.unit = std::move(unit);
  return p;
}

Parameter slo_row(std::string key, std::string label, std::string help) {
  return real_row(std::move(key), std::move(label), "ms", 0, {0, 1e9}, std::move(help), kAdvanced);
}

}  // namespace

Rows server_rows() {
  return {
      on_row("serve.prefix_cache", "Prefix cache",
             "Keep KV blocks of finished prompts and reuse them for prompts with the same prefix (vLLM's default)"),
      on_row("serve.chunked_prefill", "Chunked prefill",
             "Split long prompts into chunks that share steps with decoding (off: a prompt is computed in one step)"),
      int_row("serve.block_size", "Block", "tokens", 16, {1, 1024}, "Tokens per block of the KV cache", kAdvanced),
      choice_row("serve.policy", "Order", {"fcfs", "priority"}, "First come first served, or by the request's priority",
                 kAdvanced),
      real_row(
          "serve.kv_gib", "KV cache", "GiB", 0, {0, 65536},
          "Memory for KV blocks when the engine serves; 0: what max_num_seqs requests of full length need, at most "
          "half of what is free",
          kAdvanced),
      int_row("serve.queue", "Queue", "requests", 256, {0, 1000000},
              "Requests that may wait before the server answers 429", kAdvanced),
      folders_row("serve.adapters", "Adapters", "PEFT adapter folders, keyed by the model name in the request"),
  };
}

Rows sweep_rows() {
  return {
      choice_row(
          "sweep.backend", "Backend", {"auto", "engine", "model", "http"},
          "Serving backend: this engine, the cost model of the target, or a server over HTTP; auto: the engine on cpu, "
          "else the model",
          kAdvanced),
      text_row("sweep.url", "Server", "", "Base address of an OpenAI-compatible server, e.g. http://127.0.0.1:8000",
               kAdvanced),
      text_row("sweep.model", "Served model", "", "Model name on the server; empty: the server's first model",
               kAdvanced),
      numbers("sweep.request_rates", "Rates", "requests/s", Json::array({1, 2, 4, 8, 16, 32, 64}),
              "Offered request rates, one point per rate and input length; \"inf\": all at once"),
      numbers("sweep.input_lens", "Prompts", "tokens", Json::array({512}), "Input lengths to measure"),
      int_row("sweep.output_len", "Answer", "tokens", 128, {1, 1048576}, "Tokens that every request generates",
              kAdvanced),
      int_row("sweep.num_prompts", "Requests", "requests", 100, {1, 10000000}, "Requests per measured point",
              kAdvanced),
      int_row("sweep.warmups", "Warm-up", "requests", 0, {0, 100000},
              "Warm-up requests before each point, not counted in the result", kAdvanced),
      choice_row("sweep.arrival", "Arrival", {"poisson", "constant", "burst", "closed"},
                 "Open loop at random or equal intervals, all at once, or a closed loop of `concurrency` users",
                 kAdvanced),
      real_row("sweep.burstiness", "Burstiness", "", 1, {0.01, 1000},
               "Shape of the gamma-distributed intervals: 1 is Poisson, smaller values are burstier", kAdvanced),
      int_row("sweep.concurrency", "Concurrency", "requests", 0, {0, 1000000},
              "Users of a closed loop; for an open loop, the maximum number in flight (0: no limit)", kAdvanced),
      choice_row("sweep.lengths", "Lengths", {"fixed", "uniform", "recorded"},
                 "Request lengths: all equal, uniform within a spread, or as recorded in a file", kAdvanced),
      real_row("sweep.spread", "Spread", "", 0, {0, 1}, "Spread of uniform lengths: 0.2 is plus or minus 20 %",
               kAdvanced),
      path_row("sweep.workload", "Workload", "Recorded requests: CSV or JSONL with arrival and lengths, or a result",
               kAdvanced),
      int_row("sweep.shared_prefix", "Shared prefix", "tokens", 0, {0, 1048576},
              "Length of the prefix that all prompts share", kAdvanced),
      choice_row("sweep.prompts", "Prompts", {"salted", "replayed"},
                 "New random prompts for every point, or the same prompts, which hit the prefix cache (vLLM bench's "
                 "default seed)",
                 kAdvanced),
      int_row("sweep.repeats", "Repeats", "", 1, {1, 100}, "Measurements of every point, each with another seed",
              kAdvanced),
      int_row("sweep.seed", "Seed", "", 1, {0, 9007199254740991.0}, "Seed of arrivals, lengths and prompts", kAdvanced),
      slo_row("sweep.slo_ttft_ms", "SLO: TTFT", "Maximum time to the first token; 0: none"),
      slo_row("sweep.slo_tpot_ms", "SLO: TPOT", "Maximum time per token after the first; 0: none"),
      slo_row("sweep.slo_e2e_ms", "SLO: end to end", "Maximum end-to-end time of a request; 0: none"),
  };
}

}  // namespace mw::experiment::rows
