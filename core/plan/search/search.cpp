// SPDX-License-Identifier: Apache-2.0
#include "core/plan/search/search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <set>
#include <thread>
#include <tuple>

#include "core/base/elapsed.h"
#include "core/mesh/layout/size_constraints.h"
#include "core/mesh/layout/unused_axes.h"
#include "core/plan/request/lengths.h"
#include "core/plan/request/local_model.h"

namespace mw::plan {
namespace {

constexpr std::array<int, 3> kChunks{0, 256, 1024};
// Further sizes for SearchScope::settings.
constexpr std::array<int, 5> kMoreChunks{0, 128, 256, 512, 1024};
constexpr std::array<StackProfile::Attention, 2> kAttentions{StackProfile::Attention::materialised,
                                                             StackProfile::Attention::fused};
constexpr std::array<DType, 2> kAdapterTypes{DType::bf16, DType::f32}, kMomentTypes = kAdapterTypes;
constexpr std::array<int, 6> kMaxSequences{16, 32, 64, 128, 256, 512};
constexpr std::array<model::Remat, 3> kRemats{model::Remat::none, model::Remat::block, model::Remat::layer};
constexpr std::array<DType, 2> kKvTypes{DType::bf16, DType::fp8};

// The values of a list and the current value, ascending.
template <class T, size_t N>
std::vector<T> with_own(const std::array<T, N>& values, T own) {
  std::set<T> all(values.begin(), values.end());
  all.insert(own);
  return {all.begin(), all.end()};
}

mesh::ShardingUse use_of(Work work) {
  return work == Work::rollout || work == Work::serve ? mesh::ShardingUse::sampling : mesh::ShardingUse::training;
}

std::vector<std::string> axes_of(const Request& request) {
  std::vector<std::string> axes;
  for (const mesh::MeshAxis& axis : request.mesh.axes)
    if (axis.name != "fsdp" && axis.name != "tp") axes.push_back(axis.name);
  const std::vector<std::string> splitting = mesh::splitting_axes(request.rules, use_of(request.work));
  const bool splits_only = request.rules.preset == mesh::Preset::megatron;
  for (const std::string axis : {"fsdp", "tp"}) {
    const bool splits = std::find(splitting.begin(), splitting.end(), axis) != splitting.end();
    if (request.mesh.has(axis) || (splits && !(splits_only && axis == "fsdp"))) axes.push_back(axis);
  }
  // Nodes may hold copies, each of which is gathered within its node (hybrid sharding).
  if (request.rules.preset == mesh::Preset::fsdp && request.target.hosts() > 1 && !request.mesh.has("data"))
    axes.push_back("data");
  return axes;
}

// The request's choice on another mesh; requested placements apply to the original mesh only.
PlanChoice on_mesh(const Request& request, const mesh::Mesh& mesh) {
  PlanChoice c = choice_of(request);
  if (!(c.mesh == mesh)) c.places.clear();
  c.mesh = mesh;
  return c;
}

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    small.push_back(d);
    if (d * d != n) large.push_back(n / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

// The layouts of rows: the request's own, and packed rows if the lengths of the data are known.
std::vector<RowLayout> layouts_of(const Request& request) {
  const Lengths& l = request.lengths;
  if (l.rows == RowLayout::packed || l.histogram.empty()) return {l.rows};
  return {l.rows, RowLayout::packed};
}

// Adds the choice with every layout of rows, attention and types of adapters and moments.
void add_settings(const Request& request, PlanChoice choice, std::vector<PlanChoice>& out) {
  const RowStatistics packed = row_statistics(request.lengths, 1);
  for (const RowLayout rows : layouts_of(request))
    for (const auto attention : kAttentions)
      for (const DType adapters : with_own(kAdapterTypes, request.profile.adapters)) {
        if (request.method != model::TrainMethod::lora && adapters != request.profile.adapters) continue;
        choice.rows = rows;
        choice.steps = request.train.steps;
        if (rows != request.lengths.rows && choice.steps > 0 && packed.rows > 0)
          choice.steps = std::max<std::int64_t>(
              1, std::llround(static_cast<double>(choice.steps) * packed.packed_rows / packed.rows));
        choice.attention = attention;
        choice.adapters = adapters;
        for (const DType moments : with_own(kMomentTypes, request.profile.moments)) {
          // Moments in fewer bits than what they update are no default of any software.
          if (moments != request.profile.moments && bytes_of(moments) < bytes_of(adapters)) continue;
          choice.moments = moments;
          out.push_back(choice);
        }
      }
}

void add_training(const Request& request, const mesh::Mesh& mesh, SearchScope scope, std::vector<PlanChoice>& out) {
  const std::int64_t rows = request.train.batch * std::max(1, request.train.accumulation);
  const int ways = mesh::batch_devices(mesh);
  PlanChoice c = on_mesh(request, mesh);
  for (const std::int64_t batch : divisors(rows)) {
    if (batch % ways != 0) continue;
    c.batch = batch;
    c.accumulation = static_cast<int>(rows / batch);
    for (const model::Remat remat : kRemats)
      for (const int chunk : scope == SearchScope::settings ? with_own(kMoreChunks, request.train.loss_chunk)
                                                            : with_own(kChunks, request.train.loss_chunk)) {
        c.remat = remat;
        c.loss_chunk = chunk;
        if (scope == SearchScope::settings)
          add_settings(request, c, out);
        else
          out.push_back(c);
      }
  }
}

void add_serving(const Request& request, const mesh::Mesh& mesh, std::vector<PlanChoice>& out) {
  PlanChoice c = on_mesh(request, mesh);
  for (const DType kv : with_own(kKvTypes, request.kv)) {
    c.kv = kv;
    if (request.work == Work::rollout) {
      out.push_back(c);
      continue;
    }
    for (const int sequences : with_own(kMaxSequences, request.serve.max_num_seqs)) {
      c.max_num_seqs = sequences;
      out.push_back(c);
    }
  }
}

void add_forward(const Request& request, const mesh::Mesh& mesh, std::vector<PlanChoice>& out) {
  PlanChoice c = on_mesh(request, mesh);
  for (const int chunk : with_own(kChunks, request.forward.chunk)) {
    c.loss_chunk = chunk;
    out.push_back(c);
  }
}

// All choices for a request on its target: meshes over its axes and the axes of its sharding rules that are legal for
// the model and, in training, divide the micro-batch.
std::vector<PlanChoice> enumerate_choices(const Request& request, SearchScope scope) {
  std::vector<PlanChoice> out;
  for (const mesh::Mesh& m : legal_meshes(request)) {
    if (request.work == Work::train) add_training(request, m, scope, out);
    if (request.work == Work::forward) add_forward(request, m, out);
    if (request.work == Work::rollout || request.work == Work::serve) add_serving(request, m, out);
  }
  return out;
}

constexpr Bytes kNoPlan{std::numeric_limits<std::int64_t>::max()};

Candidate evaluate(const Request& request, const PlanChoice& choice) {
  Candidate c{.choice = choice, .peak = kNoPlan};
  const Plan plan = predict(with_choice(request, choice));
  if (!plan.refusals.empty()) throw Error(plan.refusals.front());
  c.seconds = plan.step.seconds.value;
  c.tokens_per_second = plan.run.tokens_per_second;
  c.hours = plan.run.hours.value;
  c.usd = request.work == Work::serve ? plan.run.usd_per_million_tokens : plan.run.usd.value;
  c.peak = plan.memory.at_peak.total();
  c.capacity = plan.memory.capacity;
  return c;
}

struct Task {
  const Request* request;
  PlanChoice choice;
};

// Task i belongs to thread i % threads; the calling thread is the first of them.
std::vector<Candidate> evaluate_all(const std::vector<Task>& tasks, const SearchOptions& options,
                                    std::stop_token stop) {
  const size_t threads = std::clamp<size_t>(static_cast<size_t>(std::max(1, options.threads)), 1, tasks.size() + 1);
  std::vector<Candidate> out(tasks.size());
  std::vector<std::exception_ptr> refused(tasks.size()), broken(threads);
  std::atomic<std::int64_t> done = 0;
  const auto one = [&](size_t i) {
    try {
      out[i] = evaluate(*tasks[i].request, tasks[i].choice);
    } catch (const Error&) {
      out[i] = {.choice = tasks[i].choice, .peak = kNoPlan};
      refused[i] = std::current_exception();
    }
  };
  const auto work = [&](size_t thread) {
    try {
      for (size_t i = thread; i < tasks.size() && !stop.stop_requested(); i += threads) {
        one(i);
        ++done;
        if (thread == 0 && options.progress) options.progress(done, static_cast<std::int64_t>(tasks.size()));
      }
    } catch (...) {
      broken[thread] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (size_t t = 1; t < threads; ++t) others.emplace_back(work, t);
    work(0);
  }
  for (const std::exception_ptr& error : broken)
    if (error) std::rethrow_exception(error);
  if (stop.stop_requested()) throw cancelled("the search");
  const bool none = std::all_of(refused.begin(), refused.end(), [](const auto& e) { return e != nullptr; });
  if (none && !refused.empty()) std::rethrow_exception(refused.front());
  return out;
}

auto metrics(const Candidate& candidate, Work work) {
  return std::tuple(time_of(candidate, work), candidate.usd, candidate.peak.value);
}

bool dominates(const Candidate& a, const Candidate& b, Work work) {
  const auto [at, ac, am] = metrics(a, work);
  const auto [bt, bc, bm] = metrics(b, work);
  return at <= bt && ac <= bc && am <= bm && (at < bt || ac < bc || am < bm);
}

// In ascending order of all three metrics a candidate can be dominated by earlier ones only, and then by one of the
// front.
void mark_pareto(std::vector<Candidate>& all, Work work) {
  std::vector<Candidate*> order;
  for (Candidate& c : all) order.push_back(&c);
  std::stable_sort(order.begin(), order.end(),
                   [&](const Candidate* a, const Candidate* b) { return metrics(*a, work) < metrics(*b, work); });
  std::vector<const Candidate*> front;
  for (Candidate* c : order) {
    c->pareto = std::none_of(front.begin(), front.end(), [&](const Candidate* f) { return dominates(*f, *c, work); });
    if (c->pareto) front.push_back(c);
  }
}

double key_of(const Candidate& candidate, RankBy by, Work work) {
  if (by == RankBy::time) return time_of(candidate, work);
  return by == RankBy::cost ? candidate.usd : static_cast<double>(candidate.peak.value);
}

}  // namespace

PlanChoice choice_of(const Request& request) {
  return {.target = request.target.id,
          .mesh = request.mesh,
          .places = request.places,
          .batch = request.work == Work::forward   ? request.forward.batch
                   : request.work == Work::rollout ? request.rollout.batch
                                                   : request.train.batch,
          .accumulation = request.work == Work::train ? request.train.accumulation : 1,
          .remat = request.train.remat,
          .loss_chunk = request.work == Work::forward ? request.forward.chunk : request.train.loss_chunk,
          .weights = request.weights,
          .kv = request.kv,
          .max_num_seqs = request.serve.max_num_seqs,
          .max_len = request.work == Work::train ? request.lengths.max_len : 0,
          .stack = request.stack,
          .rows = request.lengths.rows,
          .steps = request.train.steps,
          .attention = request.profile.attention,
          .adapters = request.profile.adapters,
          .moments = request.profile.moments};
}

std::vector<mesh::Mesh> legal_meshes(const Request& request) {
  const model::TensorInventory inventory(request.model);
  const auto all = mesh::size_constraints(inventory, request.mesh, request.rules, adapter_shapes(request, inventory),
                                          use_of(request.work));
  std::vector<mesh::Mesh> out;
  for (mesh::Mesh& m : mesh::factorisations(axes_of(request), request.target.devices()))
    if (mesh::is_legal(all, m)) out.push_back(std::move(m));
  return out;
}

Request with_choice(Request r, const PlanChoice& choice) {
  r.places = choice.places;
  r.mesh = choice.mesh;
  r.weights = choice.weights;
  r.kv = choice.kv;
  r.serve.max_num_seqs = choice.max_num_seqs;
  if (r.work == Work::forward) r.forward.chunk = choice.loss_chunk;
  if (r.work != Work::train) return r;
  r.train.batch = choice.batch;
  r.train.accumulation = choice.accumulation;
  r.train.remat = choice.remat;
  r.train.loss_chunk = choice.loss_chunk;
  if (choice.rows != r.lengths.rows) r.train.steps = choice.steps;
  r.profile.attention = choice.attention;
  if (choice.adapters != r.profile.adapters) r.profile.adapters = r.profile.gradients = choice.adapters;
  r.profile.moments = choice.moments;
  r.lengths.rows = choice.rows;
  if (choice.max_len > 0 && choice.max_len != r.lengths.max_len) {
    r.lengths.max_len = choice.max_len;
    r.lengths.packed_rows = r.lengths.histogram.empty() ? 0 : pack_count(r.lengths.histogram, choice.max_len);
  }
  return r;
}

double time_of(const Candidate& candidate, Work work) {
  const bool by_token = work == Work::serve || (work == Work::train && candidate.tokens_per_second > 0);
  return by_token ? 1 / candidate.tokens_per_second : candidate.seconds;
}

SearchResult search(std::span<const Request> targets, const SearchOptions& options, std::stop_token stop) {
  const auto start = std::chrono::steady_clock::now();
  SearchResult result;
  if (targets.empty()) return result;
  const Work work = targets.front().work;
  std::vector<Task> tasks;
  for (const Request& r : targets)
    for (PlanChoice& c : enumerate_choices(r, options.scope)) tasks.push_back({&r, std::move(c)});
  for (Candidate& c : evaluate_all(tasks, options, stop))
    if (c.fits()) result.candidates.push_back(std::move(c));
  result.evaluated = static_cast<std::int64_t>(tasks.size());
  mark_pareto(result.candidates, work);
  const auto rank = [&](const Candidate& c) {
    return std::tuple(options.scope == SearchScope::settings && !c.pareto, key_of(c, options.by, work),
                      time_of(c, work), c.choice.stack != targets.front().stack, c.usd, c.peak.value);
  };
  std::stable_sort(result.candidates.begin(), result.candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
  result.seconds = seconds_since(start);
  return result;
}

std::vector<lint::Edit> edits(const PlanChoice& from, const PlanChoice& to, Work work) {
  std::vector<lint::Edit> out;
  if (from.target != to.target) out.push_back({"target.id", to.target});
  for (lint::Edit& edit : lint::mesh_edits(from.mesh, to.mesh)) out.push_back(std::move(edit));
  if (!from.places.empty() && to.places.empty()) out.push_back({"sharding.places", nullptr});
  if (work == Work::train) {
    if (from.max_len != to.max_len) out.push_back({"data.max_len", to.max_len});
    if (from.batch != to.batch) out.push_back({"train.batch", to.batch});
    if (from.accumulation != to.accumulation) out.push_back({"train.accumulation", to.accumulation});
    if (from.remat != to.remat) out.push_back({"train.remat", std::string(to_string(to.remat))});
    if (from.loss_chunk != to.loss_chunk) out.push_back({"train.loss_chunk", to.loss_chunk});
    if (from.rows != to.rows && to.rows == RowLayout::packed) out.push_back({"data.packing", true});
    if (from.steps != to.steps) out.push_back({"train.steps", to.steps});
    if (from.attention != to.attention) out.push_back({"train.attention", std::string(to_string(to.attention))});
    if (from.adapters != to.adapters) out.push_back({"train.adapter_dtype", std::string(to_string(to.adapters))});
    if (from.moments != to.moments) out.push_back({"train.moment_dtype", std::string(to_string(to.moments))});
  }
  if (from.weights != to.weights) out.push_back({"train.dtype", std::string(to_string(to.weights))});
  if (from.kv != to.kv) out.push_back({"serve.kv_dtype", std::string(to_string(to.kv))});
  if (from.max_num_seqs != to.max_num_seqs) out.push_back({"serve.max_num_seqs", to.max_num_seqs});
  return out;
}

std::string to_text(const PlanChoice& choice, Work work) {
  std::string text = mesh::to_text(choice.mesh);
  const auto add = [&](const std::string& part) { text += ", " + part; };
  if (work == Work::train) {
    add("batch " + std::to_string(choice.batch) + " x " + std::to_string(choice.accumulation));
    add("remat " + std::string(to_string(choice.remat)));
    add(choice.loss_chunk == 0 ? "full logits" : "loss by " + std::to_string(choice.loss_chunk));
    if (choice.rows == RowLayout::packed) add("packed");
    if (choice.attention == StackProfile::Attention::fused) add("fused attention");
    add(std::string(to_string(choice.adapters)) + " adapters");
    add(std::string(to_string(choice.moments)) + " moments");
    add(std::string(to_string(choice.stack)));
  } else {
    add("KV " + std::string(to_string(choice.kv)));
  }
  if (work == Work::serve) add(std::to_string(choice.max_num_seqs) + " sequences");
  return text;
}

}  // namespace mw::plan
