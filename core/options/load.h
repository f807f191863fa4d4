// SPDX-License-Identifier: Apache-2.0
// The load of a server and a sweep over loads. Plain values.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_names.h"

namespace mw::options {

enum class Arrival {
  poisson,   // open loop, gamma intervals of shape `burstiness` (1: exponential), see serve/load/load.h
  constant,  // open loop, equal intervals
  burst,     // all at once
  closed,    // `concurrency` users, each of whom sends when the last request has finished
  recorded   // open loop, as in `workload`, stretched to the mean rate `request_rate`; rate 0: unchanged
};
enum class LengthDistribution { fixed, uniform, recorded };  // uniform: within +- spread of the mean
// salted: new random prompts for every point, on a server with an empty prefix cache. replayed: the same prompts at
// every rate, on a server that keeps its cache.
enum class PromptMode { salted, replayed };
enum class SweepBackend { engine, model, http };
// prefix_aware is the policy cache_aware of SGLang's Model Gateway (lightseekorg/smg,
// docs/concepts/routing/cache-aware.md): the replicas that hold the prompt's prefix, unless the loads are uneven.
enum class Routing { round_robin, least_loaded, prefix_aware };

struct Slo {  // limits in ms; 0: none
  double ttft_ms = 0, tpot_ms = 0, e2e_ms = 0;
  bool any() const { return ttft_ms > 0 || tpot_ms > 0 || e2e_ms > 0; }
};

struct LoadSettings {
  Arrival arrival = Arrival::poisson;
  double request_rate = 1;  // requests/s; infinity is a burst
  double burstiness = 1;
  int concurrency = 0;                    // closed: users; open: limit of requests in flight at the client, 0: none
  int input_len = 512, output_len = 128;  // tokens
  LengthDistribution lengths = LengthDistribution::fixed;
  double spread = 0;                 // 0..1, for LengthDistribution::uniform
  std::filesystem::path workload{};  // for `recorded`, see serve::read_workload()
  int shared_prefix = 0;             // leading tokens that prompts share
  int shared_prefixes = 1;           // different ones; each request draws one of them
  PromptMode prompts = PromptMode::salted;
  int num_prompts = 100;
  int warmups = 0;  // requests before the measurement
  std::uint64_t seed = 1;
  std::uint64_t salt = 0;  // loads with another one have other prompts
};

// `request_rate`, `input_len` and `salt` belong to a point of the sweep.
struct Sweep : LoadSettings {
  std::optional<SweepBackend> backend;
  std::string url, model;
  std::vector<std::string> request_rates, input_lens, num_prompts_at;  // see serve::sweep_settings()
  int repeats = 0;
  Slo slo;
  int replicas = 0;
  Routing routing{};
};

}  // namespace mw::options

template <>
inline constexpr mw::EnumNames<5> mw::kEnumNames<mw::options::Arrival>{"poisson", "constant", "burst", "closed",
                                                                       "recorded"};

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::options::LengthDistribution>{"fixed", "uniform", "recorded"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::options::PromptMode>{"salted", "replayed"};

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::options::SweepBackend>{"engine", "model", "http"};

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::options::Routing>{"round_robin", "least_loaded", "prefix_aware"};
