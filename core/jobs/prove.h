// SPDX-License-Identifier: Apache-2.0
// The proof of an experiment's mesh (core/train/proof.h) with its memory against what was predicted, for the command
// line and the window's button.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/experiment/experiment.h"
#include "core/train/proof.h"

namespace mw::jobs {

// Of one device and category: the largest it was.
struct MemoryComparison {
  int device = 0;
  MemoryCategory category{};
  Bytes predicted, measured;
  bool holds() const;  // within 2 %
};

struct MeshProof {
  train::Proof proof;
  std::vector<MemoryComparison> memory;  // categories that a device has or should have
  bool holds() const;
  // What breaks first: a tensor in the order of a step, else a collective, else a device's memory. Empty: nothing.
  std::string broken() const;
};

struct ProveOptions {
  long steps = 3;  // fewer where the experiment has fewer
  std::function<void(const std::string& phase, long done, long total)> progress = {};
  std::function<void(engine::Cluster&)> on_mesh = {};  // see train::ProofRequest
};
// On the calling thread. Throws Error as a run does; out of memory as core/jobs/out_of_memory.h reports it.
MeshProof prove(const experiment::Experiment& experiment, const ProveOptions& options, std::stop_token stop = {});

// The same on a thread of its own. Callbacks come on that thread; the last one is `done`.
class ProofJob {
 public:
  struct Callbacks {
    std::function<void(const std::string& phase, long done, long total)> progress;
    std::function<void(std::optional<MeshProof> proof, std::optional<Error> error)> done;  // one of them
  };
  ProofJob(experiment::Experiment experiment, long steps, Callbacks callbacks);
  ~ProofJob();  // requests stop and joins
  void stop();
  bool finished() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

Json to_json(const MeshProof& proof);         // every comparison
std::string to_text(const MeshProof& proof);  // a table for people

}  // namespace mw::jobs
