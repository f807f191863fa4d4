// SPDX-License-Identifier: Apache-2.0
#include "core/plan/search/search.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <set>
#include <thread>
#include <tuple>

#include "core/base/counted.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/experiment/parameters.h"
#include "core/mesh/layout/layout.h"
#include "core/mesh/layout/sharding_options.h"
#include "core/mesh/layout/size_constraints.h"
#include "core/plan/prediction/plan_figures.h"
#include "core/plan/prediction/predict.h"
#include "core/plan/request/lengths.h"
#include "core/plan/request/local_model.h"

namespace mw::plan {
namespace {

// The values that the row of a setting lists for a search, and the request's own, ascending.
template <class T>
std::vector<T> tried(const char* key, SearchScope scope, T own) {
  std::set<T> all{own};
  const experiment::SearchColumn& column = experiment::find_parameter(key)->columns.search;
  const auto add = [&](const std::vector<std::string_view>& values) {
    for (const std::string_view value : values)
      if constexpr (std::is_enum_v<T>)
        all.insert(parse<T>(value).value());
      else
        all.insert(std::stoi(std::string(value)));
  };
  add(column.values);
  if (scope == SearchScope::settings) add(column.settings);
  return {all.begin(), all.end()};
}

mesh::ShardingUse use_of(Work work) {
  return work == Work::rollout || work == Work::serve ? mesh::ShardingUse::sampling : mesh::ShardingUse::training;
}

// The number of devices of the target, or of the document's mesh of virtual devices on this machine.
int devices_of(const Request& request) {
  return request.stack == model::Stack::engine ? request.mesh.devices() : request.target.devices();
}

bool splits_over_data(const Request& request) {
  const std::vector<std::string> splitting = mesh::splitting_axes(request.rules, use_of(request.work));
  return std::find(splitting.begin(), splitting.end(), "data") != splitting.end();
}

// Whether the stack can split a mesh over the axis: MESH-1 refuses others than fsdp and tp for Tunix, and the recipe of
// TorchAX makes data a part of fsdp.
bool has_axis(model::Stack stack, std::string_view axis) {
  if (stack == model::Stack::tunix) return axis == "fsdp" || axis == "tp";
  return stack != model::Stack::torchax || axis != "data";
}

// Whether legal_meshes() may add copies of the model to the axes of the request.
bool may_add_data(const Request& request, const std::vector<std::string>& axes) {
  return has_axis(request.stack, "data") && splits_over_data(request) &&
         std::find(axes.begin(), axes.end(), "data") == axes.end();
}

// Whether training may hold copies of the model in the slices or nodes of its target.
bool copies_slices(const Request& request) {
  return request.work == Work::train && has_axis(request.stack, "data") && splits_over_data(request) &&
         mesh::has_network(request.target);
}

std::vector<std::string> axes_of(const Request& request) {
  std::vector<std::string> axes;
  for (const mesh::MeshAxis& axis : request.mesh.axes)
    if (axis.name != "fsdp" && axis.name != "tp" && has_axis(request.stack, axis.name)) axes.push_back(axis.name);
  const std::vector<std::string> splitting = mesh::splitting_axes(request.rules, use_of(request.work));
  const bool splits_only = request.rules.preset == mesh::Preset::megatron;
  for (const std::string axis : {"fsdp", "tp"}) {
    const bool splits = std::find(splitting.begin(), splitting.end(), axis) != splitting.end();
    if (request.mesh.has(axis) || (splits && !(splits_only && axis == "fsdp"))) axes.push_back(axis);
  }
  // Slices and nodes may hold copies, each of which is gathered within its own (hybrid sharding).
  const bool copies = request.rules.preset == mesh::Preset::fsdp ? request.target.hosts() > 1 : copies_slices(request);
  if (copies && !request.mesh.has("data")) axes.push_back("data");
  return axes;
}

std::vector<mesh::Mesh> legal_among(const std::vector<mesh::SizeConstraint>& needs,
                                    const std::vector<std::string>& axes, int devices) {
  std::vector<mesh::Mesh> out;
  for (mesh::Mesh& m : mesh::factorisations(axes, devices))
    if (mesh::is_legal(needs, m)) out.push_back(std::move(m));
  return out;
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

PlanChoice with_settings(PlanChoice c, const ChosenSettings& s) {
  static_cast<ChosenSettings&>(c) = s;
  return c;
}
void set_training(Request& r, const Request& base, const ChosenSettings& s) {
  r.train.batch = s.batch;
  r.train.accumulation = s.accumulation;
  r.train.remat = s.remat;
  r.train.loss_chunk = s.loss_chunk;
  r.train.steps = s.rows != base.lengths.rows ? s.steps : base.train.steps;
  r.profile.attention = s.attention;
  const bool own = s.adapters == base.profile.adapters;
  r.profile.adapters = s.adapters;
  r.profile.gradients = own ? base.profile.gradients : s.adapters;
  r.profile.moments = s.moments;
  r.lengths.rows = s.rows;
}
// Sets what a search varies besides the mesh in `r`, which may have the settings of another choice for `base`.
void set_settings(Request& r, const Request& base, const ChosenSettings& s) {
  r.kv = s.kv;
  r.serve.max_num_seqs = s.max_num_seqs;
  if (r.work == Work::forward) r.forward.chunk = s.loss_chunk;
  if (r.work == Work::train) set_training(r, base, s);
  if (r.engine && r.engine->update) r.engine->update(r);
}

// The choices of a request on one mesh that are predicted together.
struct Group {
  const Request* request;
  size_t base;        // index of the choice with the request's settings on this mesh
  size_t begin, end;  // of Space::settings
};
struct Space {
  std::vector<PlanChoice> bases{};  // by mesh
  std::vector<Group> groups{};
  std::vector<ChosenSettings> settings{};

  void end_group(const Request& request) {
    const size_t begin = groups.empty() ? 0 : groups.back().end;
    if (begin < settings.size()) groups.push_back({&request, bases.size() - 1, begin, settings.size()});
  }
};

// Adds the settings with every layout of rows, attention and types of adapters and moments. The engine has one
// attention and f32.
void add_settings(const Request& request, const RowStatistics& packed, ChosenSettings choice,
                  std::vector<ChosenSettings>& out) {
  constexpr SearchScope kScope = SearchScope::settings;
  const bool engine = request.stack == model::Stack::engine;
  for (const RowLayout rows : layouts_of(request))
    for (const auto attention : tried("train.attention", kScope, request.profile.attention))
      for (const model::DType adapters : tried("train.adapter_dtype", kScope, request.profile.adapters)) {
        const bool is_own = adapters == request.profile.adapters;
        if (!is_own && (engine || request.method != model::TrainMethod::lora)) continue;
        if (engine && attention != request.profile.attention) continue;
        choice.rows = rows;
        choice.steps = request.train.steps;
        if (rows != request.lengths.rows && choice.steps > 0 && packed.rows > 0)
          choice.steps = std::max<std::int64_t>(
              1, std::llround(static_cast<double>(choice.steps) * packed.packed_rows / packed.rows));
        choice.attention = attention;
        choice.adapters = adapters;
        for (const model::DType moments : tried("train.moment_dtype", kScope, request.profile.moments)) {
          if (engine && moments != request.profile.moments) continue;
          // Moments in fewer bits than what they update are no default of any software.
          if (moments != request.profile.moments && bytes_of(moments) < bytes_of(adapters)) continue;
          choice.moments = moments;
          out.push_back(choice);
        }
      }
}

void add_training(const Request& request, SearchScope scope, Space& space) {
  const std::int64_t rows = request.train.batch * std::max(1, request.train.accumulation);
  const PlanChoice& base = space.bases.back();
  const int ways = mesh::batch_devices(base.mesh);
  const RowStatistics packed = row_statistics(request.lengths, 1);
  ChosenSettings s = base;
  for (const std::int64_t batch : divisors(rows)) {
    if (batch % ways != 0) continue;
    s.batch = batch;
    s.accumulation = static_cast<int>(rows / batch);
    for (const model::Remat remat : tried("train.remat", scope, request.train.remat))
      for (const int chunk : tried("train.loss_chunk", scope, request.train.loss_chunk)) {
        s.remat = remat;
        s.loss_chunk = chunk;
        if (scope == SearchScope::settings)
          add_settings(request, packed, s, space.settings);
        else
          space.settings.push_back(s);
      }
    space.end_group(request);
  }
}

void add_serving(const Request& request, Space& space) {
  ChosenSettings s = space.bases.back();
  for (const model::DType kv : tried("serve.kv_dtype", SearchScope::sharding, request.kv)) {
    if (request.stack == model::Stack::engine && kv != request.kv) continue;  // its cache is in f32
    s.kv = kv;
    if (request.work == Work::rollout) {
      space.settings.push_back(s);
      continue;
    }
    for (const int sequences : tried("serve.max_num_seqs", SearchScope::sharding, request.serve.max_num_seqs)) {
      s.max_num_seqs = sequences;
      space.settings.push_back(s);
    }
  }
  space.end_group(request);
}

void add_forward(const Request& request, Space& space) {
  ChosenSettings s = space.bases.back();
  for (const int chunk : tried("train.loss_chunk", SearchScope::sharding, request.forward.chunk)) {
    s.loss_chunk = chunk;
    space.settings.push_back(s);
  }
  space.end_group(request);
}

// Adds all choices for a request on its target: meshes over its axes and the axes of its sharding rules that are legal
// for the model and, in training, divide the micro-batch, each with the axes that may cross the network between slices
// or nodes.
void add_choices(const Request& request, SearchScope scope, Space& space) {
  for (const mesh::Mesh& m : legal_meshes(request)) {
    const PlanChoice base = on_mesh(request, m);
    for (const auto& places : mesh::network_placements(m, request.target, base.places)) {
      space.bases.push_back(base);
      space.bases.back().places = places;
      if (request.work == Work::train) add_training(request, scope, space);
      if (request.work == Work::forward) add_forward(request, space);
      if (request.work == Work::rollout || request.work == Work::serve) add_serving(request, space);
    }
  }
}

struct Figures {
  CandidateFigures plan{};
  bool is_planned = false;
};

// Throws what predict() throws, and refusals.
Figures figures_of(const Request& request, const PlanChoice& choice) {
  const Plan plan = predict(with_choice(request, choice));
  if (!plan.refusals.empty()) throw Error(plan.refusals.front());
  return {{.seconds = plan.step.seconds.value,
           .tokens_per_second = plan.run.tokens_per_second,
           .hours = plan.run.hours.value,
           .usd = request.work == Work::serve ? plan.run.usd_per_million_tokens : plan.run.usd.value,
           .peak = plan.memory.at_peak.total(),
           .capacity = plan.memory.capacity},
          true};
}

// Predicts the groups of a search on one thread. A choice that cannot be predicted has no figures.
class GroupPredictor {
 public:
  explicit GroupPredictor(const Space& space) : space_(space) {}
  void predict(const Group& group, std::vector<Figures>& out) {
    if (base_ != group.base) try {
        base_ = group.base;
        predictor_.reset();
        predictor_.emplace(with_choice(*group.request, space_.bases[group.base]));
      } catch (const Error&) {
        predictor_.reset();  // no settings make this mesh possible
      }
    if (!predictor_) return;
    for (size_t i = group.begin; i < group.end; ++i) {
      set_settings(predictor_->request(), *group.request, space_.settings[i]);
      if (const auto figures = predictor_->figures()) out[i] = {*figures, true};
    }
  }

 private:
  const Space& space_;
  std::optional<size_t> base_;
  std::optional<PlanPredictor> predictor_;  // of base_
};

// Threads take the groups in order; the calling thread is one of them and reports the progress.
std::vector<Figures> predict_all(const Space& space, const SearchOptions& options, const std::stop_token& stop) {
  const size_t threads =
      std::clamp<size_t>(static_cast<size_t>(std::max(1, options.threads)), 1, space.groups.size() + 1);
  const auto total = static_cast<std::int64_t>(space.settings.size());
  std::vector<Figures> out(space.settings.size());
  std::vector<std::exception_ptr> broken(threads);
  std::atomic<size_t> next = 0;
  std::atomic<std::int64_t> done = 0;
  const auto work = [&](size_t thread) {
    try {
      GroupPredictor predictor(space);
      for (size_t g = next++; g < space.groups.size() && !stop.stop_requested(); g = next++) {
        predictor.predict(space.groups[g], out);
        done += static_cast<std::int64_t>(space.groups[g].end - space.groups[g].begin);
        if (thread == 0 && options.progress && done < total) options.progress(done, total);
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
  if (options.progress && total > 0 && !stop.stop_requested()) options.progress(total, total);
  if (stop.stop_requested()) throw cancelled("the search");
  return out;
}

Candidate candidate_of(PlanChoice choice, const CandidateFigures& f) {
  return {.choice = std::move(choice),
          .seconds = f.seconds,
          .tokens_per_second = f.tokens_per_second,
          .hours = f.hours,
          .usd = f.usd,
          .peak = f.peak,
          .capacity = f.capacity};
}

// --- Reasons ---

// Names the first unmet constraint of the mesh with the fewest of them.
std::string no_mesh_text(const Request& request) {
  std::vector<std::string> axes = axes_of(request);
  if (may_add_data(request, axes)) axes.push_back("data");
  const model::TensorInventory inventory(request.model);
  const std::vector<mesh::SizeConstraint> needs = mesh::size_constraints(
      inventory, request.mesh, request.rules, adapter_shapes(request, inventory), use_of(request.work));
  const std::vector<mesh::Mesh> all = mesh::factorisations(axes, devices_of(request));
  const std::string devices = counted(devices_of(request), "device");
  if (all.empty()) return "no axis can have " + devices;
  const mesh::Mesh nearest = *std::min_element(all.begin(), all.end(), [&](const mesh::Mesh& a, const mesh::Mesh& b) {
    const auto unmet = [&](const mesh::Mesh& m) {
      return std::count_if(needs.begin(), needs.end(), [&](const auto& n) { return !mesh::is_satisfied(n, m); });
    };
    return unmet(a) < unmet(b);
  });
  for (const mesh::SizeConstraint& need : needs)
    if (!mesh::is_satisfied(need, nearest))
      return "no mesh of " + devices + " divides the model: of " + mesh::to_text(nearest) + ", " + joined(need.axes) +
             " cannot split the " + std::to_string(need.size) + " of " + need.tensor +
             (has_axis(request.stack, "data")
                  ? ""
                  : ", and " + std::string(to_string(request.stack)) + " has no axis data: choose a smaller target");
  return {};
}

std::string no_batch_text(const Request& request, std::span<const PlanChoice> bases) {
  int fewest = std::numeric_limits<int>::max();
  for (const PlanChoice& base : bases) fewest = std::min(fewest, mesh::batch_devices(base.mesh));
  const std::int64_t rows = request.train.batch * std::max(1, request.train.accumulation);
  return "the " + std::to_string(rows) + " rows of a step cannot be split over " +
         counted(devices_of(request), "device") + ": every legal mesh splits rows at least " + std::to_string(fewest) +
         " ways; raise train.batch to a multiple of " + std::to_string(fewest) + ", or choose a smaller target";
}

struct RequestSpace {  // of Space
  size_t first_base, end_base, begin, end;
};

// Empty if a choice fits.
std::string reason_without_plan(const Request& request, const RequestSpace& part, const Space& space,
                                const std::vector<Figures>& figures) {
  if (part.first_base == part.end_base) return no_mesh_text(request);
  const std::span bases(space.bases.data() + part.first_base, part.end_base - part.first_base);
  if (part.begin == part.end) return no_batch_text(request, bases);
  const Figures* least = nullptr;
  for (size_t i = part.begin; i < part.end; ++i)
    if (figures[i].is_planned && (!least || figures[i].plan.peak < least->plan.peak)) least = &figures[i];
  if (!least) try {
      figures_of(request, with_settings(bases.front(), space.settings[part.begin]));
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  if (least->plan.peak <= least->plan.capacity) return {};
  return "the plan with the lowest peak needs " + mw::to_text(least->plan.peak) + " of the " +
         mw::to_text(least->plan.capacity) + " of a device";
}

double ranked_usd(const Candidate& c) {
  return c.sweep ? c.sweep->usd : c.usd;
}

// The value without its last bits, so that rounding decides no rank: equal values stay equal, and all others in order.
double without_noise(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::isfinite(value) ? std::ldexp(std::round(std::ldexp(fraction, 32)), exponent - 32) : value;
}

// Sort key of candidates that are equal otherwise: fewer devices and simpler settings come first.
auto simplicity(const PlanChoice& c) {
  return std::tuple(c.mesh.devices() * c.replicas, c.places.size(), c.accumulation, c.remat, c.loss_chunk != 0,
                    -c.loss_chunk);
}

auto metrics(const Candidate& candidate, Work work) {
  return std::tuple(!candidate.sweep, without_noise(ranked_time(candidate, work)), without_noise(ranked_usd(candidate)),
                    candidate.peak.value);
}

bool dominates(const Candidate& a, const Candidate& b, Work work) {
  const auto [as, at, ac, am] = metrics(a, work);
  const auto [bs, bt, bc, bm] = metrics(b, work);
  return as == bs && at <= bt && ac <= bc && am <= bm && (at < bt || ac < bc || am < bm);
}

// In ascending order of all metrics a candidate can be dominated by earlier ones only, and then by one of the
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

Json places_json(const std::vector<mesh::RequestedPlacement>& places) {
  Json out = Json::array();
  for (const mesh::RequestedPlacement& p : places) out.push_back(mesh::to_text(p));
  return places.empty() ? Json(nullptr) : out;
}

double key_of(const Candidate& candidate, RankBy by, Work work) {
  if (by == RankBy::time) return ranked_time(candidate, work);
  return by == RankBy::cost ? ranked_usd(candidate) : static_cast<double>(candidate.peak.value);
}

}  // namespace

PlanChoice choice_of(const Request& request) {
  PlanChoice c;
  c.target = request.target.id;
  c.mesh = request.mesh;
  c.places = request.places;
  c.batch = request.work == Work::forward   ? request.forward.batch
            : request.work == Work::rollout ? request.rollout.batch
                                            : request.train.batch;
  if (request.work == Work::train) {
    c.accumulation = request.train.accumulation;
    c.max_len = request.lengths.max_len;
  }
  c.remat = request.train.remat;
  c.loss_chunk = request.work == Work::forward ? request.forward.chunk : request.train.loss_chunk;
  c.weights = request.weights;
  c.kv = request.kv;
  c.max_num_seqs = request.serve.max_num_seqs;
  if (request.work == Work::serve) c.replicas = request.serve.replicas;
  c.stack = request.stack;
  c.rows = request.lengths.rows;
  c.steps = request.train.steps;
  c.attention = request.profile.attention;
  c.adapters = request.profile.adapters;
  c.moments = request.profile.moments;
  return c;
}

std::vector<mesh::Mesh> legal_meshes(const Request& request) {
  const std::vector<mesh::SizeConstraint> needs = size_constraints(request, use_of(request.work));
  std::vector<std::string> axes = axes_of(request);
  std::vector<mesh::Mesh> out = legal_among(needs, axes, devices_of(request));
  if (!out.empty() || !may_add_data(request, axes)) return out;
  axes.insert(axes.begin(), "data");
  return legal_among(needs, axes, devices_of(request));
}

Request with_choice(Request r, const PlanChoice& choice) {
  r.places = choice.places;
  r.mesh = choice.mesh;
  r.weights = choice.weights;
  r.serve.replicas = choice.replicas;
  if (r.work != Work::train) {
    set_settings(r, r, choice);
    return r;
  }
  Request out = r;
  set_settings(out, r, choice);
  if (choice.max_len > 0 && choice.max_len != r.lengths.max_len) {
    out.lengths.max_len = choice.max_len;
    out.lengths.packed_rows = r.lengths.histogram.empty() ? 0 : pack_count(r.lengths.histogram, choice.max_len);
    if (out.engine && out.engine->update) out.engine->update(out);
  }
  return out;
}

double time_of(const Candidate& candidate, Work work) {
  const bool by_token = work == Work::serve || (work == Work::train && candidate.tokens_per_second > 0);
  return by_token ? 1 / (candidate.tokens_per_second * candidate.choice.replicas) : candidate.seconds;
}

double ranked_time(const Candidate& c, Work work) {
  if (!c.sweep) return time_of(c, work);
  return std::isnan(c.sweep->rate) ? c.sweep->seconds : 1 / c.sweep->rate;
}

void rank(std::vector<Candidate>& candidates, const SearchOptions& options, const Request& own) {
  const Work work = own.work;
  mark_pareto(candidates, work);
  const auto order = [&](const Candidate& c) {
    return std::tuple(!c.sweep, options.scope == SearchScope::settings && !c.pareto,
                      without_noise(key_of(c, options.by, work)),
                      without_noise(c.sweep ? c.sweep->seconds : time_of(c, work)), c.choice.stack != own.stack,
                      without_noise(ranked_usd(c)), c.peak.value, simplicity(c.choice));
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return order(a) < order(b); });
}

SearchResult search(std::span<const Request> targets, const SearchOptions& options, std::stop_token stop) {
  const auto start = std::chrono::steady_clock::now();
  SearchResult result;
  if (targets.empty()) return result;
  Space space;
  std::vector<RequestSpace> parts;
  for (const Request& r : targets) {
    const size_t first_base = space.bases.size(), begin = space.settings.size();
    add_choices(r, options.scope, space);
    parts.push_back({first_base, space.bases.size(), begin, space.settings.size()});
  }
  const std::vector<Figures> figures = predict_all(space, options, stop);
  const bool none = std::none_of(figures.begin(), figures.end(), [](const Figures& f) { return f.is_planned; });
  if (none && !space.groups.empty()) {  // throws the reason of the first
    const Group& first = space.groups.front();
    figures_of(*first.request, with_settings(space.bases[first.base], space.settings.front()));
  }
  for (const Group& g : space.groups)
    for (size_t i = g.begin; i < g.end; ++i)
      if (figures[i].is_planned && figures[i].plan.peak <= figures[i].plan.capacity)
        result.candidates.push_back(
            candidate_of(with_settings(space.bases[g.base], space.settings[i]), figures[i].plan));
  result.evaluated = static_cast<std::int64_t>(figures.size());
  for (size_t i = 0; i < targets.size(); ++i)
    if (std::string reason = reason_without_plan(targets[i], parts[i], space, figures); !reason.empty())
      result.without_plan.push_back({targets[i].target.id, targets[i].stack, std::move(reason)});
  rank(result.candidates, options, targets.front());
  result.seconds = seconds_since(start);
  return result;
}

void sort_by_time(std::vector<Candidate>& candidates, Work work) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return metrics(a, work) < metrics(b, work); });
}

std::string mesh_text(const PlanChoice& choice) {
  std::string text = mesh::to_text(choice.mesh);
  for (size_t i = 0; i < choice.places.size(); ++i) text += (i == 0 ? " (" : "; ") + mesh::to_text(choice.places[i]);
  return choice.places.empty() ? text : text + ")";
}

std::vector<lint::Edit> edits(const PlanChoice& from, const PlanChoice& to, Work work) {
  std::vector<lint::Edit> out;
  if (from.target != to.target) out.push_back({"target.id", to.target});
  mesh::Mesh written = from.mesh;
  if (from.target != to.target)  // whose default mesh a document without a mesh would have: every axis is written
    for (mesh::MeshAxis& axis : written.axes) axis.size = std::numeric_limits<int>::max();
  for (lint::Edit& edit : lint::mesh_edits(written, to.mesh)) out.push_back(std::move(edit));
  if (from.places != to.places) out.push_back({"sharding.places", places_json(to.places)});
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
  if (from.replicas != to.replicas) out.push_back({"sweep.replicas", to.replicas});
  return out;
}

std::string to_text(const PlanChoice& choice, Work work) {
  std::string text = (choice.replicas > 1 ? counted(choice.replicas, "replica") + ", " : "") + mesh_text(choice);
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
  if (work == Work::serve) add(counted(choice.max_num_seqs, "sequence"));
  return text;
}

}  // namespace mw::plan
