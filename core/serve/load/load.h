// SPDX-License-Identifier: Apache-2.0
// The requests of one load point: when they arrive and how long they are. Determined by settings and seed alone, so all
// backends (engine, simulation, HTTP) get the same load. Pure functions; any thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/options/load.h"

namespace mw::serve {

using options::Arrival;
using options::LengthDistribution;
using options::LoadSettings;
using options::PromptMode;

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
