// SPDX-License-Identifier: Apache-2.0
#include "core/plan/search/smallest_changes.h"

#include <algorithm>
#include <bit>
#include <map>

#include "core/base/counted.h"

namespace mw::plan {
namespace {

// The settings of a choice, one bit each, the smallest edits first. Batch and accumulation go together: a step keeps
// its rows; so do length and accumulation: a step keeps its tokens.
enum Setting : unsigned {
  kChunk = 1,
  kRemat = 2,
  kBatch = 4,
  kLength = 8,
  kSequences = 16,
  kMesh = 32,
  kKv = 64,
  kWeights = 128,
  kTarget = 256
};
constexpr int kShortestRow = 64, kShorter = 3;  // tokens; halvings of the length

// Another target, or more virtual devices, implies another mesh, so that counts as one change.
unsigned changed(const PlanChoice& a, const PlanChoice& b) {
  const bool target = a.target != b.target || a.mesh.devices() != b.mesh.devices(),
             is_other_mesh = !(a.mesh == b.mesh) || a.places != b.places;
  return (target ? kTarget : 0U) | (!target && is_other_mesh ? kMesh : 0U) | (a.batch != b.batch ? kBatch : 0U) |
         (a.max_len != b.max_len ? kLength : 0U) | (a.remat != b.remat ? kRemat : 0U) |
         (a.loss_chunk != b.loss_chunk ? kChunk : 0U) | (a.weights != b.weights ? kWeights : 0U) |
         (a.kv != b.kv ? kKv : 0U) | (a.max_num_seqs != b.max_num_seqs ? kSequences : 0U);
}

std::string label_of(unsigned settings, const PlanChoice& to) {
  std::string text;
  const auto add = [&](unsigned which, const std::string& part) {
    if (settings & which) text += (text.empty() ? "" : ", ") + part;
  };
  add(kTarget, to.target == "cpu" ? "mesh " + mesh_text(to) : "target " + to.target + " (" + mesh_text(to) + ")");
  add(kMesh, "mesh " + mesh_text(to));
  add(kBatch, "batch " + std::to_string(to.batch) + ", accumulation " + std::to_string(to.accumulation));
  const bool says_accumulation = (settings & kBatch) != 0;
  add(kLength, "packed rows of " + counted(to.max_len, "token") +
                   (says_accumulation ? std::string() : ", accumulation " + std::to_string(to.accumulation)));
  add(kRemat, "remat " + std::string(to_string(to.remat)));
  add(kChunk, to.loss_chunk == 0 ? std::string("full logits") : "loss by " + counted(to.loss_chunk, "row"));
  add(kWeights, "weights of bf16");
  add(kKv, "KV cache of " + std::string(to.kv == model::DType::fp8 ? "fp8" : "bf16"));
  add(kSequences, counted(to.max_num_seqs, "sequence"));
  return "Use " + text;
}

// Shorter packed rows that hold every example whose length is known, with as many tokens per step.
std::vector<Request> with_shorter_rows(const Request& request) {
  std::vector<Request> out;
  const Lengths& l = request.lengths;
  if (request.work != Work::train || l.rows != RowLayout::packed) return out;
  const int longest = l.histogram.empty() ? kShortestRow : std::max(kShortestRow, l.histogram.back().first);
  for (int times = 2; times <= 1 << kShorter && l.max_len / times >= longest; times *= 2) {
    PlanChoice shorter = choice_of(request);
    shorter.max_len = l.max_len / times;
    shorter.accumulation *= times;
    out.push_back(with_choice(request, shorter));
  }
  return out;
}

}  // namespace

std::vector<PlanChange> smallest_changes(const Request& request, std::span<const Request> larger,
                                         const SearchOptions& options, std::stop_token stop) {
  std::vector<Request> targets{request};
  targets.insert(targets.end(), larger.begin(), larger.end());
  std::vector<Candidate> all;
  if (request.weights == model::DType::f32 && request.work == Work::train) {
    targets.push_back(request);
    targets.back().weights = model::DType::bf16;
  }
  for (Request& shorter : with_shorter_rows(request)) targets.push_back(std::move(shorter));
  const PlanChoice own = choice_of(request);
  double own_time = 0;
  try {
    Candidate c{.choice = own};
    const Plan plan = predict(request);
    if (plan.fits()) return {};
    c.seconds = plan.step.seconds.value;
    c.tokens_per_second = plan.run.tokens_per_second;
    own_time = time_of(c, request.work);
  } catch (const Error&) {
    // A mesh that does not match the target has no predicted time.
  }
  // The fastest of each set of changed settings; the search ranks them by time.
  std::map<unsigned, const Candidate*> best;
  SearchOptions by_time = options;
  by_time.by = RankBy::time;
  by_time.scope = SearchScope::sharding;
  for (Candidate& c : search(targets, by_time, stop).candidates) all.push_back(std::move(c));
  sort_by_time(all, request.work);
  for (const Candidate& c : all) best.try_emplace(changed(own, c.choice), &c);
  std::vector<PlanChange> out;
  std::vector<std::pair<unsigned, const Candidate*>> ordered(best.begin(), best.end());
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    const auto key = [](unsigned s) { return std::tuple((s & kTarget) != 0, std::popcount(s), s); };
    return key(a.first) < key(b.first);
  });
  for (const auto& [settings, c] : ordered) {
    const unsigned these = settings;
    const bool smaller = std::any_of(best.begin(), best.end(), [&](const auto& other) {
      return other.first != these && (other.first & these) == other.first;
    });
    if (smaller || settings == 0) continue;
    out.push_back({.edits = edits(own, c->choice, request.work),
                   .label = label_of(settings, c->choice),
                   .settings = std::popcount(settings),
                   .slowdown = own_time > 0 ? time_of(*c, request.work) / own_time - 1 : 0,
                   .seconds = c->seconds,
                   .usd = c->usd,
                   .peak = c->peak});
  }
  return out;
}

std::string slowdown_text(double slowdown) {
  if (slowdown >= 1) return number_text(1 + slowdown, 3) + " times as slow";
  if (slowdown <= -0.5) return number_text(1 / (1 + slowdown), 3) + " times as fast";
  if (slowdown > 0.005) return number_text(100 * slowdown, 2) + " % slower";
  return slowdown < -0.005 ? number_text(-100 * slowdown, 2) + " % less time" : std::string("as fast");
}

lint::Fix fix_of(const PlanChange& change) {
  return {change.label, slowdown_text(change.slowdown) + ", peak " + to_text(change.peak), change.edits,
          change.slowdown};
}

}  // namespace mw::plan
