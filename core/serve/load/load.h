// SPDX-License-Identifier: Apache-2.0
// The traffic of one load point: which requests come, when, and how long they are. One function of its settings and
// seed, the same for every backend (engine, simulator, HTTP). Any thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mw::serve {

enum class Arrival {
  poisson,   // open loop, gamma intervals of shape `burstiness` (1: exponential)
  constant,  // open loop, equal intervals
  burst,     // all at once
  closed,    // `concurrency` users, each sends when its last answer is complete
  recorded   // open loop, as `workload` says, stretched to the mean rate `request_rate`; rate 0: at its own pace
};
enum class LengthDistribution { fixed, uniform, recorded };  // uniform: within +- spread of the mean
enum class PromptMode { salted, replayed };  // new random prompts for every point, or the same ones again

struct LoadSettings {
  Arrival arrival = Arrival::poisson;
  double request_rate = 1;  // requests/s; infinity is a burst
  double burstiness = 1;
  int concurrency = 0;  // closed: users; open: most in flight at the client, 0: no cap
  int input_len = 512, output_len = 128;
  LengthDistribution lengths = LengthDistribution::fixed;
  double spread = 0;                 // 0..1, of uniform
  std::filesystem::path workload{};  // recorded: see read_workload
  int shared_prefix = 0;             // tokens at the start that all prompts share
  PromptMode prompts = PromptMode::salted;
  int num_prompts = 100;
  int warmups = 0;  // requests before the clock starts, not counted
  std::uint64_t seed = 1;
  std::uint64_t salt = 0;  // of salted prompts: which point
};

// A prompt is a function of (prompt_seed, token index): `length` tokens, the first `shared` of them from shared_seed.
struct TimedRequest {
  std::int64_t id = 0;
  double at_s = 0;  // intended; closed loop: 0, sent when a user is free
  int prompt_len = 0, output_len = 0;
  std::uint64_t prompt_seed = 0, shared_seed = 0;
  int shared = 0;
};
struct Load {
  LoadSettings settings;
  std::vector<TimedRequest> warmups, requests;  // by arrival
};
// Throws Error LOAD for settings that make no load (rate 0, lengths below 1, no request).
Load make_load(const LoadSettings& settings);

// Token ids in [first_id, vocab) of a prompt, the same on every backend. Never special ones if first_id is above them.
std::vector<int> prompt_ids(const TimedRequest& request, int first_id, int vocab);

// RecordedRequest: CSV or JSONL with arrival (s), prompt and output tokens, or a result of ours or of vLLM with
// details.
struct RecordedRequest {
  double at_s = 0;
  int prompt_len = 0, output_len = 0;
};
std::vector<RecordedRequest> read_workload(const std::filesystem::path& file);

// Requests needed so that the relative half width of a 95 % interval of the p-th percentile, estimated from `values`,
// is at most `share`.
long required_requests(const std::vector<double>& values, double p, double share);

}  // namespace mw::serve
