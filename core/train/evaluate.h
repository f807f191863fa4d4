// SPDX-License-Identifier: Apache-2.0
// Evaluation on held-out rows: loss, and answers compared with the expected ones; the sizes of a run's batches.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <stop_token>
#include <vector>

#include "core/base/event.h"
#include "core/data/dataset/batches.h"
#include "core/data/tokenizer/chat.h"
#include "core/data/tokenizer/tokenizer.h"
#include "core/train/settings.h"

namespace mw::engine {
struct StepOptions;
struct TokenBatch;
}  // namespace mw::engine

namespace mw::train {

struct LoadedModel;

engine::TokenBatch token_batch(const data::Batch& batch);  // views into `batch`

// At most eval_rows held-out rows.
data::ExampleList evaluation_rows(const Settings& settings, const data::ExampleList& held_out);

// Mean -log p over the loss tokens of the examples; empty if there are none.
std::optional<double> held_out_loss(LoadedModel& model, const data::ExampleList& examples,
                                    const data::BatchOptions& options, const engine::StepOptions& step,
                                    std::stop_token stop);

// The first `limit` examples with a prompt.
std::vector<data::Example> with_prompts(const data::ExampleList& examples, long limit,
                                        const data::Tokenizer& tokenizer);
// Maximum number of tokens of an answer: the length of the expected answer plus a margin, to show how a wrong answer
// continues.
int answer_limit(const data::Example& example, const data::Tokenizer& tokenizer, const options::SampleOptions& options);

// Number of answered prompts, and of answers that equal the expected one after trimming.
struct Score {
  long asked = 0, right = 0;
  double share() const { return asked > 0 ? static_cast<double>(right) / static_cast<double>(asked) : 0; }
};
// Answers the first `limit` of the examples, which have prompts.
Score answer_prompts(LoadedModel& model, std::span<const data::Example> examples, long limit,
                     const data::ChatTemplate& chat, const options::SampleOptions& options, std::stop_token stop,
                     const std::function<void(const event::Sample&, long done, long total)>& on_answer);

// Properties of the data that the planner uses for a run.
struct DataFacts {
  model::Config config;
  data::BatchSize largest;                    // maxima over the micro-batches of the run
  std::vector<data::BatchSize> shares;        // the same per shard along the batch axes of the mesh
  std::vector<data::BatchSize> evaluation{};  // the same for batches of held-out rows; empty if there are none
  struct PromptTokens {                       // prompts that are answered during the run; 0: none
    int prompt = 0, with_answer = 0;          // longest prompt; longest prompt with its answer limit
  } asked{};
  std::map<int, std::int64_t> lengths{};  // tokens of a training row, rows
  double loss_share = 0;                  // of their tokens; 0: no row has any
};

// Examines at most the first 20,000 micro-batches of at most 4,000,000 rows, and all held-out rows and prompts.
DataFacts data_facts(const Settings& settings, const model::Config& config, const data::TokenizedDataset& dataset,
                     const data::Tokenizer& tokenizer);

}  // namespace mw::train
