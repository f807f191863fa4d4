// SPDX-License-Identifier: Apache-2.0
// Every plan of one piece of work: all legal meshes x micro-batch x remat x loss chunk (x KV type and sequences where
// it serves), on one target or several. A step keeps its rows. Deterministic whatever the threads. Any thread.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/lint/check.h"
#include "core/plan/time/predict.h"

namespace mw::plan {

enum class RankBy { time, cost, memory };

// What a search varies.
struct PlanChoice {
  std::string target;  // id
  mesh::Mesh mesh;
  std::vector<mesh::RequestedPlacement> places{};  // of the request's own mesh only
  std::int64_t batch = 1;                          // rows of a micro-batch; of forward and rollout: as asked
  int accumulation = 1;
  model::Remat remat = model::Remat::none;
  int loss_chunk = 0;
  DType weights = DType::bf16;  // as asked; only smallest_changes varies it
  DType kv = DType::bf16;
  int max_num_seqs = 64;
  bool operator==(const PlanChoice&) const = default;
};
struct Candidate {
  PlanChoice choice{};
  double seconds = 0;            // of a step: an optimizer step, a forward, a rollout, a decode step
  double tokens_per_second = 0;  // real ones
  double hours = 0, usd = 0;     // of the run; usd of a server: per million output tokens
  Bytes peak{}, capacity{};
  bool pareto = false;  // no other is as good in time, cost and memory and better in one
  bool fits() const { return peak <= capacity; }
};

struct SearchOptions {
  RankBy by = RankBy::time;
  int threads = 2;
  std::function<void(std::int64_t done, std::int64_t total)> progress{};  // from the calling thread
};
struct SearchResult {
  std::vector<Candidate> candidates;  // those that fit, best first; equal ones by target, mesh, batch ...
  std::int64_t evaluated = 0;
  double seconds = 0;  // that the search took
};

// The choices of a request on its target: meshes over its axes and those that its sharding uses, legal for the model
// and, in training, dividing the micro-batch.
std::vector<PlanChoice> enumerate_choices(const Request& request);
Request with_choice(Request request, const PlanChoice& choice);  // of the request's own target
PlanChoice choice_of(const Request& request);

// One request per target, alike but for what the target changes. A choice that has no plan (a step beyond all reason)
// does not fit. Throws cancelled(), or the first error where no choice has a plan.
SearchResult search(std::span<const Request> targets, const SearchOptions& options, std::stop_token stop = {});

double time_of(const Candidate& candidate,
               Work work);  // what `by` time compares: seconds of a step; of a server per token

// What to set in the experiment to get from one choice to another.
std::vector<lint::Edit> edits(const PlanChoice& from, const PlanChoice& to, Work work);
std::string to_text(const PlanChoice& choice, Work work);  // "fsdp 2, tp 2, batch 2 x 4, remat layer, loss by 256"

}  // namespace mw::plan
