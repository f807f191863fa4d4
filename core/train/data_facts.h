// SPDX-License-Identifier: Apache-2.0
// Properties of the data that the planner uses for a run. Plain values.
#pragma once
#include <vector>

#include "core/train/settings.h"

namespace mw::train {

struct DataFacts {
  model::Config config;
  data::BatchSize largest;                    // maxima over the micro-batches of the run
  std::vector<data::BatchSize> shares;        // the same per shard along the batch axes of the mesh
  std::vector<data::BatchSize> evaluation{};  // the same for batches of held-out rows; empty if there are none
  struct PromptTokens {                       // prompts that are answered during the run; 0: none
    int prompt = 0, with_answer = 0;          // longest prompt; longest prompt with its answer limit
  } asked{};
};

// Examines at most the first 20,000 micro-batches, and all held-out rows and prompts.
DataFacts data_facts(const Settings& settings, const model::Config& config, const data::TokenizedDataset& dataset,
                     const data::Tokenizer& tokenizer);

}  // namespace mw::train
