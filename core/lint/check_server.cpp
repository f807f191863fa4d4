// SPDX-License-Identifier: Apache-2.0
// Rules about the limits of a server: SERVE. vLLM refuses each of them when it starts.
#include <algorithm>

#include "core/base/counted.h"
#include "core/lint/rules.h"

namespace mw::lint {
namespace {

constexpr std::int64_t kUsefulRequest = 256;  // tokens; a shorter limit is no fix

bool is_vllm(model::Stack stack) {
  return stack == model::Stack::vllm_tpu || stack == model::Stack::vllm_gpu;
}

std::string tokens_text(std::int64_t n) {
  return counted(n, "token");
}

void serve_1(const CheckInput& input, const RuleReport& report) {
  if (!input.server || !is_vllm(input.stack)) return;
  const ServerInput& s = *input.server;
  if (s.chunked_prefill || s.max_num_batched_tokens >= s.max_model_len) return;
  report.add({.message = "without chunked prefill a prompt is computed in one step, and a step has fewer tokens than "
                         "the longest request",
              .place = "serve.max_num_batched_tokens",
              .found = tokens_text(s.max_num_batched_tokens),
              .expected = "at least serve.max_model_len, " + tokens_text(s.max_model_len),
              .fixes = {{"Split long prompts into chunks", "", {{"serve.chunked_prefill", true}}},
                        {"Set the tokens of a step to " + std::to_string(s.max_model_len),
                         "more memory for activations",
                         {{"serve.max_num_batched_tokens", s.max_model_len}}}}});
}

void serve_2(const CheckInput& input, const RuleReport& report) {
  if (!input.server || !is_vllm(input.stack)) return;
  const ServerInput& s = *input.server;
  if (s.max_num_batched_tokens >= s.max_num_seqs) return;
  const int tokens = std::max(2048, s.max_num_seqs);
  report.add({.message = "a step has fewer tokens than sequences, each of which decodes one",
              .place = "serve.max_num_batched_tokens",
              .found = tokens_text(s.max_num_batched_tokens),
              .expected = "at least serve.max_num_seqs, " + std::to_string(s.max_num_seqs),
              .fixes = {{"Set the tokens of a step to " + std::to_string(tokens),
                         "more memory for activations",
                         {{"serve.max_num_batched_tokens", tokens}}},
                        {"Set the sequences to " + std::to_string(s.max_num_batched_tokens),
                         "fewer requests at once",
                         {{"serve.max_num_seqs", s.max_num_batched_tokens}}}}});
}

void serve_3(const CheckInput& input, const RuleReport& report) {
  if (!input.server || input.stack == model::Stack::engine) return;
  const int most = input.config.max_positions, asked = input.server->max_model_len;
  if (most <= 0 || asked <= most) return;
  report.add({.message = "the longest request exceeds the positions that the model knows",
              .place = "serve.max_model_len",
              .found = tokens_text(asked),
              .expected = "at most " + tokens_text(most),
              .fixes = {{"Set the longest request to " + tokens_text(most),
                         "longer requests are rejected",
                         {{"serve.max_model_len", most}}}}});
}

void serve_4(const CheckInput& input, const RuleReport& report) {
  if (!input.server || input.stack == model::Stack::engine) return;
  const ServerInput& s = *input.server;
  if (!s.longest_request) return report.unchecked("a memory plan of the target (target.id)");
  const std::int64_t held = *s.longest_request;
  if (held >= s.max_model_len) return;
  Finding finding{.message = "the KV cache does not hold one request of the greatest length",
                  .place = "serve.max_model_len",
                  .found = "memory for " + tokens_text(held),
                  .expected = "at least " + tokens_text(s.max_model_len)};
  if (held >= kUsefulRequest)
    finding.fixes = {{"Set the longest request to " + tokens_text(held),
                      "longer requests are rejected",
                      {{"serve.max_model_len", held}}}};
  report.add(std::move(finding));
}

// A plan would promise times of requests that the server rejects; a sweep refuses its own lengths.
void serve_5(const CheckInput& input, const RuleReport& report) {
  if (!input.server) return;
  const ServerInput& s = *input.server;
  const std::int64_t asked = std::int64_t{s.input_len} + s.output_len;
  if (asked <= s.max_model_len) return;
  Finding finding{.message =
                      "times are predicted for requests that the server rejects: prompt and answer are longer "
                      "than its longest request",
                  .place = "serve.input_len",
                  .found = tokens_text(s.input_len) + " and " + tokens_text(s.output_len),
                  .expected = "together at most serve.max_model_len, " + tokens_text(s.max_model_len)};
  const int answer = std::max(1, std::min(s.output_len, s.max_model_len / 2));
  if (s.max_model_len > 1)
    finding.fixes.push_back({"Predict for requests that fit",
                             "",
                             {{"serve.input_len", s.max_model_len - answer}, {"serve.output_len", answer}}});
  if (input.config.max_positions == 0 || asked <= input.config.max_positions)
    finding.fixes.push_back(
        {"Allow " + tokens_text(asked), "memory for longer requests", {{"serve.max_model_len", asked}}});
  report.add(std::move(finding));
}

}  // namespace

std::vector<CheckRule> server_rules() {
  constexpr auto kRefuses = RuleEffect::refuses;
  return {
      {"SERVE-1", Severity::error, kAllStacks, "Steps shorter than the longest request, without chunked prefill",
       "vLLM ends at start: max_num_batched_tokens would limit the sequence length.",
       "vllm/config/scheduler.py, verify_max_model_len", serve_1, kRefuses},
      {"SERVE-2", Severity::error, kAllStacks, "Fewer tokens than sequences in a step",
       "vLLM ends at start: every running sequence computes a token in each step.",
       "vllm/config/scheduler.py, verify_max_model_len", serve_2, kRefuses},
      {"SERVE-3", Severity::error, kAllStacks, "Requests longer than the model's context",
       "vLLM ends at start, unless VLLM_ALLOW_LONG_MAX_MODEL_LEN is set; the answers would be wrong.",
       "vllm/config/model.py, _get_and_verify_max_len; max_position_embeddings of config.json", serve_3, kRefuses},
      {"SERVE-4", Severity::error, kAllStacks, "A KV cache smaller than the longest request",
       "vLLM ends at start: the weights leave too little of the memory that it may use.",
       "vllm/v1/core/kv_cache_utils.py, check_enough_kv_cache_memory", serve_4, kRefuses},
      {"SERVE-5", Severity::warning, kAllStacks, "Planned requests longer than the server takes",
       "The server answers such requests with an error, so the predicted times are of none that it serves.",
       "vllm/entrypoints/openai/serving_engine.py, _validate_input; core/serve/scheduling/scheduler.h", serve_5},
  };
}

}  // namespace mw::lint
