// SPDX-License-Identifier: Apache-2.0
// Runs a merged folder in the serving engine, for the parity check: logits at every position of the prompts and greedy
// text, against the base model with the adapter beside it. Use on one thread.
#pragma once
#include <filesystem>
#include <stop_token>

#include "core/train/parity.h"

namespace mw::jobs {

inline constexpr int kGreedyTokens = 16;  // of each prompt

struct ServedParityRequest {
  std::filesystem::path base, merged;
  const formats::Adapter* adapter = nullptr;
  model::WeightType weights = model::WeightType::f32;  // in which the engine holds both models
};
// Loads one model after the other. ServedRun::not_run is set if a model does not fit into memory. Throws cancelled().
train::ServedRun run_served(const ServedParityRequest& request, const std::vector<train::ParityPrompt>& prompts,
                            std::stop_token stop);

}  // namespace mw::jobs
