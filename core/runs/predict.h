// SPDX-License-Identifier: Apache-2.0
// What a run will need on this machine, before it starts. Predicted values, never measured ones. Any thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/ledger.h"
#include "core/plan/memory.h"
#include "core/runs/experiment.h"
#include "core/train/trainer.h"

namespace mw::runs {

enum class Basis { bound, exact };  // every row as long as it may be; the real lengths of the data's rows

struct Prediction {
  std::string target = "cpu";
  Bytes capacity;
  Ledger at_peak;  // the instant of the largest total
  Basis basis = Basis::exact;
  std::string peak_instant;          // e.g. "backward of layer 5"
  std::vector<std::string> sources;  // what each part rests on, for people
  std::vector<Problem> notes;        // what to know besides: a model that the engine does not run
  bool fits() const { return at_peak.total() <= capacity; }
};

// What the options adapt of a model.
std::vector<plan::LoraSize> lora_sizes(const model::Config& config, const engine::LoraOptions& options);

Prediction predict_run(const train::Settings& settings, const train::DataFacts& facts);

enum class ReadData { no, yes };
// From the document: model.path or model.id; the data file is read for its real lengths where asked (and where
// the engine reads the model's tokenizer), else every row is taken as data.max_len long. Throws Error for what makes a
// prediction impossible.
Prediction predict(const Experiment& experiment, ReadData read_data, std::stop_token stop = {});

// {"capacity_bytes", "memory": {category: bytes, "total"}, "peak_instant", "sources"}
Json predicted_json(const Prediction& prediction);

}  // namespace mw::runs
