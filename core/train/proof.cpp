// SPDX-License-Identifier: Apache-2.0
#include "core/train/proof.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/engine/distributed/cluster.h"
#include "core/train/model.h"
#include "core/train/rounding.h"
#include "core/train/traffic.h"

namespace mw::train {
namespace {

using Part = engine::Cluster::Part;
using Values = std::vector<float>;
using Clock = std::chrono::steady_clock;

// The element whose difference is the largest share of what is allowed for it.
class Worst {
 public:
  explicit Worst(TensorComparison of) : worst_(std::move(of)) {}
  void take(double one, double other, double bound) {
    worst_.magnitude = std::max(worst_.magnitude, std::abs(one));
    double difference = std::abs(one - other);
    if (!std::isfinite(difference)) difference = std::numeric_limits<double>::infinity();
    const double share = difference <= 0 ? 0 : bound > 0 ? difference / bound : std::numeric_limits<double>::infinity();
    if (share < share_ || (any_ && share == share_)) return;
    any_ = true;
    share_ = share;
    worst_.difference = difference;
    worst_.bound = bound;
  }
  TensorComparison result() const { return worst_; }

 private:
  TensorComparison worst_;
  double share_ = 0;
  bool any_ = false;
};

class Prover {
 public:
  Prover(const ProofRequest& request, std::stop_token stop)
      : request_(request), s_(request.settings), stop_(std::move(stop)) {}

  MeshComparison operator()() {
    load();
    compare_start();
    if (request_.on_mesh) request_.on_mesh(*mesh_.cluster);
    for (proof_.steps = 1;; ++proof_.steps) {
      progress("proving", proof_.steps - 1, request_.steps);
      step(proof_.steps);
      if (proof_.steps == request_.steps) break;
      follow_mesh();
    }
    progress("proving", request_.steps, request_.steps);
    for (int d = 0; d < mesh_.cluster->devices(); ++d) proof_.memory.push_back(mesh_.cluster->device(d).arena.use());
    return std::move(proof_);
  }

 private:
  void progress(const std::string& phase, long done, long total) const {
    if (stop_.stop_requested()) throw cancelled("the proof");
    if (request_.progress) request_.progress(phase, done, total);
  }
  LoadedModel load_one(const ModelSettings& settings, const char* phase) const;
  void load();
  void compare_start();
  void follow_mesh();
  void step(long number);
  void compare(const TensorComparison& of, double one, double other, double bound);
  void compare(const TensorComparison& of, const Values& one, const Values& other, double bound);
  void compare_gradients(long step);
  void update(long step, double norm_one, double norm_mesh);
  void compare_traffic(long step, const std::vector<data::Batch>& micro);

  std::span<const engine::Cluster::Trained> trained() const { return one_.cluster->trained(); }
  static Values read(const LoadedModel& model, size_t index, Part part) {
    Values out(static_cast<size_t>(model.cluster->trained()[index].size));
    model.cluster->read(index, part, out);
    return out;
  }

  const ProofRequest& request_;
  Settings s_;
  std::stop_token stop_;
  LoadedModel one_, mesh_;
  data::TokenizedDataset dataset_;
  std::unique_ptr<data::BatchStream> batches_;
  StepRounding rounding_;
  std::optional<TrafficPlan> plan_;
  std::vector<double> gradient_bounds_;  // of each trained tensor in this step
  MeshComparison proof_;
};

LoadedModel Prover::load_one(const ModelSettings& settings, const char* phase) const {
  std::optional<formats::PeftAdapter> adapter;
  Settings s = s_;
  if (s.method == model::TrainMethod::lora && !s.lora.adapter.empty()) {
    adapter = read_adapter(s.lora.adapter, s.model.path);
    s.lora = lora_options(*adapter, s.lora);
  }
  LoadedModel model = load_model(settings, [&](long done, long total) { progress(phase, done, total); });
  if (s.method == model::TrainMethod::lora) model.cluster->add_lora(s.lora, s.seed);
  model.cluster->train(s.method, s.adamw);
  if (adapter) copy_adapter(*adapter, *model.cluster);
  return model;
}

void Prover::load() {
  if (s_.model.mesh.devices() < 2)
    throw Error("MESH", "there is no mesh to prove: one device computes what one device computes",
                {.place = "mesh",
                 .found = mesh::to_text(s_.model.mesh),
                 .expected = "more than one virtual device",
                 .fix = "set an axis, e.g. --set mesh.tp=2"});
  s_.model.context = s_.data.max_len;
  mesh_ = load_one(s_.model, "loading weights onto the mesh");
  ModelSettings unsharded = s_.model;
  unsharded.mesh = {};
  unsharded.capacity = machine_memory();
  one_ = load_one(unsharded, "loading weights unsharded");
  dataset_ = data::open_dataset(s_.data, *one_.tokenizer, stop_,
                                [&](long done, long total) { progress("reading data", done, total); });
  set_steps_from_epochs(s_, dataset_.train);
  batches_ = std::make_unique<data::BatchStream>(dataset_.train, batch_options(s_), one_.tokenizer->pad(), 0);
  proof_.mesh = s_.model.mesh;
  proof_.capacity = mesh_.cluster->device(0).arena.capacity();
  Settings steps = s_;  // without evaluation, samples and answers
  steps.rate.steps = request_.steps;
  steps.eval_rows = steps.sample_every = steps.answers = 0;
  proof_.facts = data_facts(steps, one_.config(), dataset_, *one_.tokenizer);
  proof_.parameters = one_.cluster->inventory().parameters();
  for (const auto& t : trained()) proof_.trained += t.size;
  plan_.emplace(*mesh_.cluster, s_);
}

void Prover::compare(const TensorComparison& of, double one, double other, double bound) {
  Worst worst(of);
  worst.take(one, other, bound);
  proof_.tensors.push_back(worst.result());
}

void Prover::compare(const TensorComparison& of, const Values& one, const Values& other, double bound) {
  Worst worst(of);
  for (size_t i = 0; i < one.size(); ++i) worst.take(one[i], other[i], bound);
  proof_.tensors.push_back(worst.result());
}

// Compares the initial states, which must have the same bits.
void Prover::compare_start() {
  const auto all = one_.cluster->inventory().tensors();
  for (size_t i = 0; i < all.size() && s_.method == model::TrainMethod::lora; ++i) {
    progress("comparing weights", static_cast<long>(i), static_cast<long>(all.size()));
    Values one(static_cast<size_t>(all[i].elements())), other(one.size());
    one_.cluster->read_weight(i, one);
    mesh_.cluster->read_weight(i, other);
    compare({.part = "weight", .tensor = all[i].name}, one, other, 0);
  }
  for (size_t i = 0; i < trained().size(); ++i)
    compare({.part = "value", .tensor = trained()[i].name}, read(one_, i, Part::value), read(mesh_, i, Part::value), 0);
}

void Prover::follow_mesh() {
  for (size_t i = 0; i < trained().size(); ++i)
    for (const Part part : {Part::value, Part::first_moment, Part::second_moment})
      one_.cluster->write(i, part, read(mesh_, i, part));
  one_.cluster->values_written();
}

void Prover::step(long number) {
  std::vector<data::Batch> micro;
  std::int64_t loss_tokens = 0, real_tokens = 0;
  int longest = 1;
  for (int i = 0; i < s_.accumulation; ++i) {
    micro.push_back(batches_->next());
    loss_tokens += micro.back().loss_tokens;
    real_tokens += micro.back().real_tokens;
    longest = std::max(longest, micro.back().len);
  }
  engine::StepOptions options = step_options(s_);
  options.gradient_scale = loss_tokens > 0 ? 1.0f / static_cast<float>(loss_tokens) : 0.0f;
  options.step = static_cast<std::uint64_t>(number);
  mesh_.cluster->clear_traffic();
  const auto run = [&](engine::Cluster& cluster, double& seconds) {
    const auto start_time = Clock::now();
    cluster.zero_gradients();
    double sum = 0;
    for (size_t i = 0; i < micro.size(); ++i) {
      options.micro_batch = i;
      sum += cluster.forward_backward(token_batch(micro[i]), options, stop_).sum;
    }
    seconds += seconds_since(start_time);
    return sum / static_cast<double>(std::max<std::int64_t>(1, loss_tokens));
  };
  const double one = run(*one_.cluster, proof_.seconds_unsharded);
  progress("proving", number - 1, request_.steps);
  const double other = run(*mesh_.cluster, proof_.seconds_mesh);
  rounding_ = step_rounding(one_.config(), {.tokens = real_tokens,
                                            .longest = longest,
                                            .loss = one,
                                            .bf16_products = s_.model.weights != model::WeightType::f32,
                                            .row_norms = s_.method == model::TrainMethod::lora && s_.lora.dora});
  compare({.step = number, .part = "loss"}, one, other, loss_bound(rounding_, one, one_.config().vocab, loss_tokens));
  compare_gradients(number);
  const double norm_one = one_.cluster->gradient_norm(), norm_mesh = mesh_.cluster->gradient_norm();
  compare({.step = number, .part = "gradient norm"}, norm_one, norm_mesh, rounding_.gradient(norm_one));
  update(number, norm_one, norm_mesh);
  compare_traffic(number, micro);
}

void Prover::compare_gradients(long step) {
  gradient_bounds_.clear();
  for (size_t i = 0; i < trained().size(); ++i) {
    const Values one = read(one_, i, Part::gradient), other = read(mesh_, i, Part::gradient);
    double largest = 0;
    for (const float g : one) largest = std::max(largest, std::abs(static_cast<double>(g)));
    gradient_bounds_.push_back(rounding_.gradient(largest));
    compare({.step = step, .part = "gradient", .tensor = trained()[i].name}, one, other, gradient_bounds_.back());
  }
}

// Both runs apply their own gradients and norms; every element is compared with the bound that follows from the
// difference of the gradients there.
void Prover::update(long step, double norm_one, double norm_mesh) {
  struct Before {
    Values value, first, second, gradient;
  };
  std::vector<Before> before;
  for (size_t i = 0; i < trained().size(); ++i)
    before.push_back({read(one_, i, Part::value), read(one_, i, Part::first_moment), read(one_, i, Part::second_moment),
                      read(one_, i, Part::gradient)});
  const double rate = learning_rate(s_.rate, step);
  for (const auto& [model, norm] : {std::pair(&one_, norm_one), {&mesh_, norm_mesh}})
    model->cluster->update(step, static_cast<float>(rate), static_cast<float>(s_.clip), norm);
  UpdateInput of{.options = s_.adamw, .t = step};
  if (s_.clip > 0 && norm_one * (1 + rounding_.relative * rounding_.cancellation) > s_.clip) {
    of.coefficient = std::min(1.0, s_.clip / (norm_one + 1e-6));
    of.off_coefficient = rounding_.relative * rounding_.cancellation;
  }
  for (size_t i = 0; i < trained().size(); ++i) {
    const Before& b = before[i];
    const std::string& name = trained()[i].name;
    of.rate = rate * static_cast<double>(trained()[i].rate);
    Worst first({.step = step, .part = "first moment", .tensor = name}),
        second({.step = step, .part = "second moment", .tensor = name}),
        value({.step = step, .part = "value", .tensor = name});
    const Values m1 = read(one_, i, Part::first_moment), m2 = read(mesh_, i, Part::first_moment),
                 v1 = read(one_, i, Part::second_moment), v2 = read(mesh_, i, Part::second_moment),
                 x1 = read(one_, i, Part::value), x2 = read(mesh_, i, Part::value);
    for (size_t k = 0; k < x1.size(); ++k) {
      const UpdateBound bound =
          update_bound(of, b.value[k], b.first[k], b.second[k], b.gradient[k], gradient_bounds_[i]);
      first.take(m1[k], m2[k], bound.first);
      second.take(v1[k], v2[k], bound.second);
      value.take(x1[k], x2[k], bound.value);
    }
    for (const Worst* w : {&first, &second, &value}) proof_.tensors.push_back(w->result());
    compare({.step = step, .part = "copies", .tensor = name}, 0, mesh_.cluster->differing_replicas(i, Part::value), 0);
  }
}

void Prover::compare_traffic(long step, const std::vector<data::Batch>& micro) {
  using Key = std::tuple<mesh::Phase, int, std::string, std::string, mesh::CollectiveKind, mesh::Cause>;
  for (int d = 0; d < mesh_.cluster->devices(); ++d) {
    std::vector<TrafficComparison> list;
    std::map<Key, size_t> at;
    const auto entry = [&](const mesh::Collective& c) -> TrafficComparison& {
      const auto [found, fresh] = at.try_emplace(Key{c.phase, c.layer, c.tensor, c.axis, c.kind, c.cause}, list.size());
      if (fresh) list.push_back({.step = step, .device = d, .what = c, .planned = {}, .counted = {}});
      return list[found->second];
    };
    for (const mesh::Collective& c : plan_->collectives(plan_->own(micro, d), d)) entry(c).planned += c.moved * c.calls;
    for (const engine::CollectiveTraffic& t : mesh_.cluster->traffic(d))
      entry(t.what).counted += t.what.moved * t.what.calls;
    proof_.traffic.insert(proof_.traffic.end(), list.begin(), list.end());
  }
}

}  // namespace

Bytes MeshComparison::planned() const {
  Bytes sum;
  for (const TrafficComparison& t : traffic) sum += t.planned;
  return sum;
}

Bytes MeshComparison::counted() const {
  Bytes sum;
  for (const TrafficComparison& t : traffic) sum += t.counted;
  return sum;
}

const TensorComparison* MeshComparison::first_broken_tensor() const {
  const auto at = std::find_if(tensors.begin(), tensors.end(), [](const auto& t) { return !t.holds(); });
  return at == tensors.end() ? nullptr : &*at;
}

const TrafficComparison* MeshComparison::first_broken_traffic() const {
  const auto at = std::find_if(traffic.begin(), traffic.end(), [](const auto& t) { return !t.holds(); });
  return at == traffic.end() ? nullptr : &*at;
}

MeshComparison prove(const ProofRequest& request, std::stop_token stop) {
  return Prover(request, std::move(stop))();
}

}  // namespace mw::train
