// SPDX-License-Identifier: Apache-2.0
// Predicts the memory of a run on this machine before it starts. Thread-safe.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/ledger.h"
#include "core/experiment/experiment.h"
#include "core/plan/calibration/plan_context.h"
#include "core/plan/memory/memory.h"
#include "core/plan/time/predict.h"
#include "core/train/trainable.h"
#include "core/train/trainer.h"

namespace mw::planning {

enum class Basis { bound, exact };  // bound: all rows at maximum length; exact: actual row lengths

struct DevicePrediction {
  Ledger at_peak;         // the instant of the largest total
  Ledger category_peaks;  // peak of each category, at possibly different instants
  std::string peak_instant;
  std::int64_t tokens = 0, loss_tokens = 0;  // of its largest micro-batch
};

struct Prediction {
  std::string target = "cpu";
  mesh::Mesh mesh{};  // of virtual devices; empty for one device
  Bytes capacity;     // of each device
  Ledger at_peak;     // of the device with the largest peak
  Basis basis = Basis::exact;
  std::optional<long long> steps{};  // of the run; empty if the rows of an epoch have not been counted
  std::optional<train::Trainable> trainable{};
  std::string peak_instant;                             // e.g. "backward of layer 5"
  std::vector<DevicePrediction> devices{};              // in row-major order of the mesh
  std::vector<std::string> sources;                     // display text: sources of shapes, lengths and formulas
  std::vector<std::pair<int, std::int64_t>> lengths{};  // tokens of a row, rows; empty: the data was not read
  double loss_share = 1;                                // of the tokens of those rows
  std::vector<Problem> notes;                           // e.g. that the engine does not run the model
  std::optional<plan::Plan> plan{};                     // of a training; see predict() with a context
  bool fits() const { return at_peak.total() <= capacity; }
};

Prediction predict_run(const train::Settings& settings, const train::DataFacts& facts);

enum class ReadData { no, yes };
// Predicts an experiment with model.path or model.id. ReadData::yes reads the data file for its row lengths if the
// tokenizer is supported; otherwise all rows have data.max_len tokens. Throws Error if no prediction is possible.
Prediction predict(const experiment::Experiment& experiment, ReadData read_data, std::stop_token stop = {});

// The same with the plan of a training: that memory, and the time of those rows at the rates of this processor. Why
// there is no plan is a note.
Prediction predict(const experiment::Experiment& experiment, ReadData read_data, const plan::PlanContext& context,
                   std::stop_token stop = {});

// Returns the model of an inference workload without adapters.
plan::InferenceModel inference_model(const train::ModelSettings& settings);

// Converts to the planner's format, with one buffer per category.
plan::DeviceMemory device_memory(const Prediction& prediction);

// Returns one line per device: "device 3 (fsdp 1, tp 1)", total and largest categories. Empty for one device.
std::vector<std::string> device_lines(const Prediction& prediction);

// {category: bytes, ..., "total"}, with the categories that are 0.
Json ledger_json(const Ledger& ledger);
// {"capacity_bytes", "memory": {category: bytes, "total", "devices": [{category: bytes, "total"}]}, "peak_instant",
// "sources"}; `memory` is that of the fullest device; `devices` is present only for several devices.
Json predicted_json(const Prediction& prediction);

}  // namespace mw::planning
