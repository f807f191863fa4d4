// SPDX-License-Identifier: Apache-2.0
// What the planner may know of a run once its data has been read. Plain values; any thread.
#pragma once
#include <vector>

#include "core/train/settings.h"

namespace mw::train {

struct DataFacts {
  model::Config config;
  data::BatchSize largest;                    // micro-batch of the run
  std::vector<data::BatchSize> shares;        // of it by each run of rows that batch axes of the mesh make
  std::vector<data::BatchSize> evaluation{};  // the largest batch of held-out rows, likewise; empty: none
  struct Asked {                              // of the prompts that are answered during the run, in tokens; 0: none
    int prompt = 0, with_answer = 0;          // the longest; the most with room for the answer
  } asked{};
};

// The largest micro-batch of the run; exact for the first 20,000 of them, which is where a longer run has seen its
// worst. Held-out rows and prompts exactly.
DataFacts data_facts(const Settings& settings, const model::Config& config, const data::Dataset& dataset,
                     const data::Tokenizer& tokenizer);

}  // namespace mw::train
