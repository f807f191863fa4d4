// SPDX-License-Identifier: Apache-2.0
// Searches all plans of a workload on one or several targets and software stacks: legal meshes (on several slices or
// nodes with each choice of the axes that cross the network) x micro-batch x remat x loss chunk x packing x attention x
// types of adapters and moments (for servers KV type and number of sequences). The rows per step stay constant; packed
// rows hold more tokens, so that a run takes fewer steps over the same data. The result does not depend on the number
// of threads. Any thread.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/lint/check.h"
#include "core/plan/prediction/predict.h"

namespace mw::plan {

enum class RankBy { time, cost, memory };

// The settings that a search varies on one mesh.
struct ChosenSettings {
  std::int64_t batch = 1;  // rows of a micro-batch; constant for forward and rollout
  int accumulation = 1;
  model::Remat remat = model::Remat::none;
  int loss_chunk = 0;
  model::DType kv = model::DType::bf16;
  int max_num_seqs = 64;
  // Settings of training, varied with SearchScope::settings only.
  RowLayout rows = RowLayout::padded;
  std::int64_t steps = 0;  // train.steps; follows from the layout of rows, 0: epochs
  StackProfile::Attention attention = StackProfile::Attention::fused;
  model::DType adapters = model::DType::bf16, moments = model::DType::f32;
  bool operator==(const ChosenSettings&) const = default;
};
struct PlanChoice : ChosenSettings {
  std::string target;  // id
  mesh::Mesh mesh;
  // The request's own if the mesh is; others only on several slices or nodes, see mesh::network_placements().
  std::vector<mesh::RequestedPlacement> places{};
  model::DType weights = model::DType::bf16;  // varied by smallest_changes() only
  int replicas = 1;                           // of a server on a target of its own; of one of the requests
  int max_len = 0;                            // tokens of a training row; varied by smallest_changes() only
  model::Stack stack = model::Stack::tunix;   // of one of the requests
  bool operator==(const PlanChoice&) const = default;
};
// Figures of a server from its simulated sweep.
struct SweepFigures {
  double seconds = 0;                                      // of a request, the mean over the points
  double rate = std::numeric_limits<double>::quiet_NaN();  // requests/s within the SLO at every length, 0: at none;
                                                           // NaN: the sweep has no SLO or no rates
  bool too_short = false;                                  // at some length: `rate` is a lower bound
  double usd = 0;                                          // per million output tokens; 0: no price
};
struct Candidate {
  PlanChoice choice{};
  double seconds = 0;            // of a step: an optimizer step, a forward, a rollout, a decode step
  double tokens_per_second = 0;  // real tokens
  double hours = 0, usd = 0;     // of the run; usd of a server: per million output tokens
  Bytes peak{}, capacity{};
  std::optional<SweepFigures> sweep{};  // of a server that was simulated: ranks it before those that were not
  bool pareto = false;  // no other candidate is at least as good in time, cost and memory and better in one of them
  bool fits() const { return peak <= capacity; }
};

// Settings of a search: mesh, batch, remat, loss chunk, KV type and sequences; or in training also packing, attention
// and the types of adapters and moments, and more sizes of the loss chunk.
enum class SearchScope { sharding, settings };

struct SearchOptions {
  RankBy by = RankBy::time;
  SearchScope scope = SearchScope::sharding;
  int threads = 2;
  std::function<void(std::int64_t done, std::int64_t total)>
      progress{};  // from the calling thread, ends with the total
};
// Why a request has no plan that fits.
struct NoPlan {
  std::string target;
  std::optional<model::Stack> stack{};  // none: the document cannot be planned for the target with any
  std::string reason;                   // a sentence
};
struct SearchResult {
  // Candidates that fit, best first; with SearchScope::settings those of the Pareto front before the others, and of
  // equal ones those with the software of the first target.
  std::vector<Candidate> candidates;
  std::vector<NoPlan> without_plan;  // in the order of the requests
  std::int64_t evaluated = 0;
  double seconds = 0;  // duration of the search
};

// The meshes of all devices of the target that the model allows, over the request's axes and those of its sharding
// rules. If those allow none, also over data, whose devices hold copies of the shards, unless the stack is Tunix or
// TorchAX, which have no such axis.
std::vector<mesh::Mesh> legal_meshes(const Request& request);
Request with_choice(Request request, const PlanChoice& choice);  // `choice` must be for the request's target
PlanChoice choice_of(const Request& request);

// `targets`: one request per target and stack, equal except for the defaults of both. A choice that cannot be predicted
// counts as not fitting. Throws cancelled(), or the first error if no choice can be predicted.
SearchResult search(std::span<const Request> targets, const SearchOptions& options, std::stop_token stop = {});

// Seconds of a real token in training and in the steady state of all replicas, else of a step.
double time_of(const Candidate& candidate, Work work);
// RankBy::time compares this: time_of(), or of a simulated server the seconds of a request: at the rate within the SLO,
// else the mean.
double ranked_time(const Candidate& candidate, Work work);
// Marks the Pareto front and sorts as SearchResult says. `own`: the request of the first target.
void rank(std::vector<Candidate>& candidates, const SearchOptions& options, const Request& own);

// Candidates by time, equal ones by cost and memory, then in their order.
void sort_by_time(std::vector<Candidate>& candidates, Work work);

// The edits of an experiment that lead from one choice to another.
std::vector<lint::Edit> edits(const PlanChoice& from, const PlanChoice& to, Work work);
std::string mesh_text(const PlanChoice& choice);           // "fsdp 2, tp 8 (fsdp = 1, 2)": the mesh with its places
std::string to_text(const PlanChoice& choice, Work work);  // "fsdp 2, tp 2, batch 2 x 4, remat layer, loss by 256"

}  // namespace mw::plan
