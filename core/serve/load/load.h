// SPDX-License-Identifier: Apache-2.0
// The requests of one load point: when they arrive and how long they are. Determined by settings and seed alone, so all
// backends (engine, simulation, HTTP) get the same load. Pure functions; any thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/base/enum_names.h"

namespace mw::serve {

enum class Arrival {
  poisson,   // open loop, gamma intervals of shape `burstiness` (1: exponential), see arrival_times.h
  constant,  // open loop, equal intervals
  burst,     // all at once
  closed,    // `concurrency` users, each of whom sends when the last request has finished
  recorded   // open loop, as in `workload`, stretched to the mean rate `request_rate`; rate 0: unchanged
};
enum class LengthDistribution { fixed, uniform, recorded };  // uniform: within +- spread of the mean
enum class PromptMode { salted, replayed };                  // new random prompts for every point, or the same again

struct LoadSettings {
  Arrival arrival = Arrival::poisson;
  double request_rate = 1;  // requests/s; infinity is a burst
  double burstiness = 1;
  int concurrency = 0;                    // closed: users; open: limit of requests in flight at the client, 0: none
  int input_len = 512, output_len = 128;  // tokens
  LengthDistribution lengths = LengthDistribution::fixed;
  double spread = 0;                 // 0..1, for LengthDistribution::uniform
  std::filesystem::path workload{};  // for `recorded`, see read_workload()
  int shared_prefix = 0;             // leading tokens that prompts share
  int shared_prefixes = 1;           // different ones; each request draws one of them
  PromptMode prompts = PromptMode::salted;
  int num_prompts = 100;
  int warmups = 0;  // requests before the measurement
  std::uint64_t seed = 1;
  std::uint64_t salt = 0;  // of PromptMode::salted: identifies the point
};

// A prompt is a function of its seeds: the first `shared` of `prompt_len` tokens come from shared_seed, the others from
// prompt_seed.
struct TimedRequest {
  std::int64_t id = 0;
  double at_s = 0;  // intended arrival, seconds; 0 in a closed loop
  int prompt_len = 0, output_len = 0;
  std::uint64_t prompt_seed = 0, shared_seed = 0;
  int shared = 0;
};
struct Load {
  LoadSettings settings;
  std::vector<TimedRequest> warmups, requests;  // in order of arrival
};
// Throws Error LOAD for settings without requests, with lengths below 1 or without a rate that they need.
Load make_load(const LoadSettings& settings);

// The requests of make_load() one after the other, without keeping them. Not thread-safe.
class LoadStream {
 public:
  enum class Part { warmups, requests };
  LoadStream(const LoadSettings& settings, Part part);  // throws what make_load() throws
  ~LoadStream();
  const LoadSettings& settings() const;  // as in Load: with the rate of a recorded workload
  std::int64_t size() const;
  TimedRequest next();  // at most size() times
  // A request that next() returned, from its index, its arrival and its lengths.
  TimedRequest restore(std::int64_t index, double at_s, int prompt_len, int output_len) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Which of the shared prefixes a request draws, from 0.
std::uint64_t drawn_prefix(std::uint64_t seed, std::int64_t request, int shared_prefixes);

// The token ids of a prompt, all in [first_id, vocab), the same for every backend.
std::vector<int> prompt_ids(const TimedRequest& request, int first_id, int vocab);

}  // namespace mw::serve

template <>
inline constexpr mw::EnumNames<5> mw::kEnumNames<mw::serve::Arrival>{"poisson", "constant", "burst", "closed",
                                                                     "recorded"};

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::serve::LengthDistribution>{"fixed", "uniform", "recorded"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::serve::PromptMode>{"salted", "replayed"};
