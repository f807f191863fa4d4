// SPDX-License-Identifier: Apache-2.0
// One row of an experiment's training data, token by token: its loss under the base and a tuned model, the tokens it
// may attend to, the rows packed beside it, and the first token that a server would encode differently. Thread-safe.
#pragma once
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/data/tokenizer/tokenizer.h"
#include "core/experiment/experiment.h"
#include "core/store/store.h"
#include "core/train/checkpoint.h"
#include "core/train/data_index.h"

namespace mw::jobs {

// The tokens that a token attends to, itself included: [first, token]. Attention never leaves the row in the file, also
// if rows are packed.
struct AttendedTokens {
  int sliding = 0, global = 0;  // first token seen in layers with a sliding window, and in the others
};
// `window`: tokens of the sliding window; 0: the model has none.
AttendedTokens attended(int token, int window);

struct PackedNeighbour {
  std::int64_t row = 0;  // in the file, 0-based
  int tokens = 0;
};
// The rows that share a packed row with `row` in the first epoch, in their order, `row` included. Empty without packing
// or if training does not use the row. `rows`: all rows of the file, as indexed.
std::vector<PackedNeighbour> packed_with(std::int64_t row, const std::vector<data::DataRow>& rows,
                                         const data::BatchOptions& options);

// The prompt as it is trained and as a server encodes it with the chat template of the model's family.
struct TemplateDifference {
  std::optional<int> token{};       // the first that differs; empty: the whole prompt is the same
  std::string trained{}, served{};  // pieces there; empty: the prompt ends
  std::string missing{};            // why there is nothing to compare
};
TemplateDifference template_difference(const train::DataIndexRequest& request, const data::Tokenizer& tokenizer,
                                       const data::DataRow& row, const data::ChatTemplate& served);

// Notes about the row, one per line: its neighbours, and where serving differs.
std::vector<std::string> row_notes(const std::vector<PackedNeighbour>& packed, const TemplateDifference& difference);

// The best checkpoint of a run of the store (train.keep_best), or its last. Throws RUN if the run is unknown or has
// none.
std::filesystem::path tuned_model_of(const store::Store& store, const store::RunId& run,
                                     train::CheckpointChoice choice = train::CheckpointChoice::best);

// -log p of each token given those before it, in nats; the first token has none.
struct TokenLosses {
  std::vector<std::optional<double>> base{}, tuned{};  // by token; tuned: empty without a tuned model
};
// Loads the experiment's model, and the adapter or model in `tuned` unless that is empty, and scores `ids`. Throws the
// errors of loading, among them that the row is longer than the model's context, and cancelled().
TokenLosses token_losses(const experiment::Experiment& experiment, const std::filesystem::path& tuned,
                         const std::vector<int>& ids, const std::stop_token& stop = {});

}  // namespace mw::jobs
