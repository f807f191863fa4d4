// SPDX-License-Identifier: Apache-2.0
// Checks claims about a training run (speed, MFU, memory, cost, loss) against physical lower bounds on the claimed
// target and against each other. Pure functions; any thread.
#pragma once
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/audit/audit.h"
#include "core/model/types.h"

namespace mw::audit {

// The figures of a claim; NaN: not stated. Rates are those of all devices together.
struct TrainingClaim {
  static constexpr double kNot = std::numeric_limits<double>::quiet_NaN();
  std::string name{}, source{};
  std::string model{}, target{};  // catalogue ids
  std::string dtype{};            // of the weights: f32, bf16, int8, int4; empty: not stated
  std::optional<model::TrainMethod> method{};
  double batch = kNot, accumulation = kNot, max_len = kNot;  // rows of all devices in a micro-batch; tokens of a row
  double steps = kNot, rows = kNot, epochs = kNot, tokens = kNot;  // tokens: of the run, without padding
  double seconds_per_step = kNot, seconds = kNot;                  // seconds: of the run
  double tokens_per_second = kNot, padded_tokens_per_second = kNot;
  double mfu = kNot;                                              // share, not percent
  std::string mfu_formula{};                                      // "6N, padded tokens"; empty: not stated
  double peak_bytes = kNot;                                       // of the fullest device
  double train_loss = kNot, eval_loss = kNot, perplexity = kNot;  // nats per token; exp of the held-out loss
  double token_accuracy = kNot;  // share of the tokens with loss whose most likely token is right, of the same rows as
                                 // eval_loss (train_loss if there is none)
  double usd = kNot, usd_per_hour = kNot;
};

// Throws CLAIM with the place for a file that is not {"training_claims": [{...}]} or has an unknown or wrong member.
std::vector<TrainingClaim> read_training_claims(const std::filesystem::path& file);
bool is_training_claims(const std::filesystem::path& file);

// One way to count the model's FLOP per token, and the share of the peak that the claimed speed gives with it.
struct MfuFormula {
  std::string name;  // "6N, tokens without padding", as a plan names them
  double share = 0;
};

struct TrainingAudit {
  std::vector<MfuFormula> mfu;         // empty if model, target or speed is not known
  std::string claimed_formula;         // the formula that gives the claimed MFU; empty: none does, or none is claimed
  std::vector<AuditFinding> findings;  // the worst first; `point` is 0
};
TrainingAudit audit(const TrainingClaim& claim, const AuditReference& reference);
TrainingAudit audit(const TrainingClaim& claim);  // only what needs neither model nor target

// The parameters that a token uses (of experts the active ones), and the elements of the matrix products among them
// without embedding and output matrix.
double active_parameters(const model::Config& config);

}  // namespace mw::audit
