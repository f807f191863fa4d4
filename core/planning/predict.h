// SPDX-License-Identifier: Apache-2.0
// What a run will need on this machine, before it starts. Predicted values, never measured ones. Any thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/ledger.h"
#include "core/experiment/experiment.h"
#include "core/plan/memory/memory.h"
#include "core/plan/time/predict.h"
#include "core/train/trainer.h"

namespace mw::planning {

enum class Basis { bound, exact };  // every row as long as it may be; the real lengths of the data's rows

struct DevicePrediction {
  Ledger at_peak;         // the instant of the largest total
  Ledger category_peaks;  // largest of each category, at different instants
  std::string peak_instant;
  std::int64_t tokens = 0, loss_tokens = 0;  // of its largest micro-batch
};

struct Prediction {
  std::string target = "cpu";
  mesh::Mesh mesh{};  // of virtual devices, where there is more than one
  Bytes capacity;     // of each device
  Ledger at_peak;     // of the device that holds most
  Basis basis = Basis::exact;
  std::optional<long long> steps{};         // of the run; none: epochs of rows that have not been counted
  std::string peak_instant;                 // e.g. "backward of layer 5"
  std::vector<DevicePrediction> devices{};  // row-major in the mesh
  std::vector<std::string> sources;         // what each part rests on, for people
  std::vector<Problem> notes;               // what to know besides: a model that the engine does not run
  bool fits() const { return at_peak.total() <= capacity; }
};

// The modules that the options adapt.
std::vector<mesh::AdapterShape> lora_sizes(const model::Config& config, const engine::LoraOptions& options);

Prediction predict_run(const train::Settings& settings, const train::DataFacts& facts);

enum class ReadData { no, yes };
// From the document: model.path or model.id; the data file is read for its real lengths where asked (and where
// the engine reads the model's tokenizer), else every row is taken as data.max_len long. Throws Error for what makes a
// prediction impossible.
Prediction predict(const experiment::Experiment& experiment, ReadData read_data, std::stop_token stop = {});

// Of weights that are only read, without adapters.
plan::InferenceModel inference_model(const train::ModelSettings& settings);

// As the planner's answers have it: a buffer for each category.
plan::DeviceMemory device_memory(const Prediction& prediction);

// Lines of a table, a device each: "device 3 (fsdp 1, tp 1)", total and what of it is largest; empty for one device.
std::vector<std::string> device_lines(const Prediction& prediction);

// {"capacity_bytes", "memory": {category: bytes, "total", "devices": [{category: bytes, "total"}]}, "peak_instant",
// "sources"}; memory is the fullest device's, devices are only there where there are several.
Json predicted_json(const Prediction& prediction);

}  // namespace mw::planning
