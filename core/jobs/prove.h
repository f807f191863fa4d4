// SPDX-License-Identifier: Apache-2.0
// Proves the mesh of an experiment: compares a few steps with one device (core/train/proof.h) and the measured memory
// with the prediction.
#pragma once
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/experiment/experiment.h"
#include "core/train/proof.h"

namespace mw::jobs {

// Peak memory of one category on one device.
struct MemoryComparison {
  int device = 0;
  MemoryCategory category{};
  Bytes predicted, measured;
  bool holds() const;  // within 2 %
};

struct MeshProof {
  train::MeshComparison proof;
  std::vector<MemoryComparison> memory;  // categories with measured or predicted memory
  bool holds() const;
  // Describes the first failed comparison: of tensors in the order of a step, then collectives, then memory. Empty if
  // the proof holds.
  std::string broken() const;
};

struct ProveOptions {
  long steps = 3;  // limited by the steps of the experiment
  std::function<void(const std::string& phase, long done, long total)> progress = {};
  std::function<void(engine::Cluster&)> on_mesh = {};  // see train::ProofRequest
};
// Runs on the calling thread. Throws the Errors of a run, including the report of core/jobs/out_of_memory.h.
MeshProof prove(const experiment::Experiment& experiment, const ProveOptions& options, std::stop_token stop = {});

Json to_json(const MeshProof& proof);         // every comparison
std::string to_text(const MeshProof& proof);  // text tables

}  // namespace mw::jobs
