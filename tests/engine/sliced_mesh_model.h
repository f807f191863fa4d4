// SPDX-License-Identifier: GPL-3.0-or-later
// A model on a mesh whose devices hold just what they compute with: networks fed with slices of the whole model, and
// their results put together again. Stored and working form are one here; storage in shards has tests of its own.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "core/engine/distributed/mesh_collectives.h"
#include "core/engine/generate/sampler.h"
#include "core/engine/transformer/transformer.h"
#include "tests/engine/families.h"
#include "tests/engine/local_slice.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine::test {

// Sizes that two and four devices divide: two KV heads for four devices, 61 rows of the vocabulary for either.
inline model::Config cut_evenly(const std::string& family) {
  model::Config c = as_family(tiny_config(), family);
  if (c.experts > 0) c.expert_dim = 20;
  if (c.ple_dim > 0) c.ple_dim = 8;
  return c;
}

inline std::vector<float> cut(const LocalSlice& s, const float* whole) {
  std::vector<float> out(static_cast<size_t>(s.elements()));
  const std::int64_t columns = s.local_columns();
  for (std::int64_t b = 0; b < s.blocks; ++b)
    for (std::int64_t r = s.rows.begin; r < s.rows.end; ++r)
      std::copy_n(whole + (b * s.block_rows + r) * s.columns + s.cols.begin, columns,
                  out.data() + (b * s.local_rows + r - s.rows.begin) * columns);
  return out;
}

inline void join(const LocalSlice& s, const float* local, float* whole) {  // adds
  const std::int64_t columns = s.local_columns();
  for (std::int64_t b = 0; b < s.blocks; ++b)
    for (std::int64_t r = s.rows.begin; r < s.rows.end; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        whole[(b * s.block_rows + r) * s.columns + s.cols.begin + c] +=
            local[(b * s.local_rows + r - s.rows.begin) * columns + c];
}

struct Trial {
  model::WeightType type = model::WeightType::f32;
  model::TrainMethod method = model::TrainMethod::lora;
  int rank = 3;
  float dropout = 0, scale = 0.2f;
  std::vector<std::string> targets = all_projections().targets;
  StepOptions step{};
};

inline void fill_values(std::uint64_t seed, size_t index, float scale, float* out, std::int64_t n) {
  const Rng rng{seed, index};
  for (std::int64_t i = 0; i < n; ++i) out[i] = scale * rng.normal_at(static_cast<std::uint64_t>(i));
}

class MeshModel {
 public:
  struct Outcome {
    double loss = 0;
    std::int64_t tokens = 0;
    std::map<std::string, std::vector<float>> gradients;
    bool operator==(const Outcome&) const = default;
  };

  MeshModel(const model::Config& config, const mesh::Mesh& mesh, const Trial& trial,
            mesh::ShardingRules rules = {.preset = mesh::Preset::megatron})
      : config_(config), trial_(trial), whole_(config), mesh_(mesh), communicators_(mesh) {
    rules.adapters = mesh::AdapterForm::separate;
    options::Lora lora = all_projections(trial.rank, trial.dropout);
    lora.targets = trial.targets;
    std::vector<mesh::AdapterShape> shapes;
    if (trial.method == model::TrainMethod::lora)
      for (const ResolvedLora& r : resolve_lora(whole_, lora)) {
        shapes.push_back({r.target.role, r.target.layer, r.rank});
        lora_.push_back(r);
      }
    placement_ = mesh::place(whole_, mesh, rules, shapes, mesh::ShardingUse::training);
    EXPECT_TRUE(placement_.problems.empty()) << placement_.problems.front().message;
    form_ = std::make_unique<mesh::ComputeSharding>(mesh, placement_, mesh::StepShape{});
    for (int d = 0; d < communicators_.devices(); ++d) {
      devices_.push_back(std::make_unique<Device>(Bytes(0), 1));
      parts_.push_back(std::make_unique<MeshCollectives>(config, *form_, placement_, communicators_.port(d)));
      networks_.push_back(std::make_unique<Network>(*parts_.back(), *devices_.back(), trial.type));
      fill_part(*networks_.back(), *parts_.back());
      if (trial.method == model::TrainMethod::lora) add_adapters(*networks_.back(), *parts_.back(), lora);
      networks_.back()->set_trainable(trial.method);
    }
  }

  // Rows in contiguous equal runs, rounded up, over the batch axes.
  Outcome step(const OwnedBatch& batch, StepGoal want = StepGoal::gradients) {
    std::vector<LossSum> sums(parts_.size());
    communicators_.each([&](Communicator& port) {
      const auto d = static_cast<size_t>(port.device());
      const OwnedBatch own = rows_of(batch, port);
      StepOptions step = trial_.step;
      step.first_row = first_row(batch.rows, port);
      sums[d] =
          want == StepGoal::gradients ? networks_[d]->forward_backward(own, step) : networks_[d]->evaluate(own, step);
    });
    Outcome out;
    for (size_t d = 0; d < sums.size(); ++d)
      if (first_of_group(d)) {
        out.loss += sums[d].sum;
        out.tokens += sums[d].tokens;
      } else {
        EXPECT_EQ(sums[d].sum, sums[leader(d)].sum) << "devices of a group agree to the bit";
      }
    if (want == StepGoal::gradients) collect(out);
    return out;
  }

  std::vector<std::vector<int>> generate(const std::vector<std::vector<int>>& prompts, options::SampleOptions options) {
    std::vector<std::vector<std::vector<int>>> answers(parts_.size());
    communicators_.each([&](Communicator& port) {
      const int rows = static_cast<int>(prompts.size()), each = (rows + groups() - 1) / groups();
      const int first = std::min(rows, group_of(port) * each), last = std::min(rows, first + each);
      options::SampleOptions own = options;
      own.first_row = first;
      const auto d = static_cast<size_t>(port.device());
      answers[d] =
          Sampler(*networks_[d])
              .generate_batch(std::span(prompts).subspan(static_cast<size_t>(first), static_cast<size_t>(last - first)),
                              own);
    });
    std::vector<std::vector<int>> out;
    for (size_t d = 0; d < answers.size(); ++d)
      if (first_of_group(d))
        out.insert(out.end(), answers[d].begin(), answers[d].end());
      else
        EXPECT_EQ(answers[d], answers[leader(d)]);
    return out;
  }

  std::vector<float> logits(const OwnedBatch& batch) {
    std::vector<std::vector<float>> all(parts_.size());
    communicators_.each([&](Communicator& port) {
      const auto d = static_cast<size_t>(port.device());
      all[d].resize(batch.ids.size() * static_cast<size_t>(config_.vocab));
      networks_[d]->logits(batch, all[d]);
    });
    for (const auto& one : all) EXPECT_EQ(one, all[0]);
    return all[0];
  }

  // Bytes of every collective of the step on a device, gradients of trainables (storage's) left out.
  using Bill = std::map<std::string, std::int64_t>;
  static void record(Bill& bill, const mesh::Collective& c) {
    if (c.cause == mesh::Cause::gradients || c.moved.value * c.calls == 0) return;
    bill[mesh::to_string(c.kind) + " " + c.axis + ", " + mesh::to_string(c.phase) + ", " + mesh::to_string(c.cause) +
         ", " + c.tensor + ", layer " + std::to_string(c.layer)] += c.moved.value * c.calls;
  }
  Bill counted(int device) {
    Bill bill;
    for (const CollectiveTraffic& t : communicators_.port(device).traffic()) record(bill, t.what);
    return bill;
  }
  Bill planned(int device, const OwnedBatch& batch, mesh::StepShape step) {
    const Tokens tokens =
        remove_padding(rows_of(batch, communicators_.port(device)), config_.vocab, config_.max_positions);
    step.device_tokens = tokens.loss_tokens.empty() ? 0 : tokens.count;
    step.device_logits = static_cast<std::int64_t>(tokens.loss_tokens.size());
    return planned(step);
  }
  Bill planned(mesh::StepShape step) {
    step.activation_bytes = step.adapter_bytes = step.gradient_bytes = 4;
    step.weight_bytes = trial_.type == model::WeightType::f32 ? 4 : 2;
    Bill bill;
    for (const mesh::Collective& c : mesh::collectives(config_, mesh_, placement_, step)) record(bill, c);
    return bill;
  }
  void clear_traffic() {
    for (int d = 0; d < communicators_.devices(); ++d) communicators_.port(d).clear_traffic();
  }

  Network& network(size_t device) { return *networks_[device]; }
  MeshCollectives& part(size_t device) { return *parts_[device]; }
  size_t devices() const { return parts_.size(); }
  const mesh::Placement& placement() const { return placement_; }

 private:
  void fill_part(Network& network, const MeshCollectives& part) {
    std::vector<float> local;
    size_t at = whole_.tensors().size();
    network.load({.f32 =
                      [&](size_t index, std::int64_t first, std::span<float> out) {
                        const model::Tensor& t = whole_.tensors()[index];
                        if (index != at) {
                          std::vector<float> all(static_cast<size_t>(t.elements()));
                          fill_values(3, index, trial_.scale, all.data(), t.elements());
                          local = cut(local_slice(part.local(), t), all.data());
                          at = index;
                        }
                        std::copy_n(local.data() + first, out.size(), out.data());
                      },
                  .bf16 = {}});
  }

  void add_adapters(Network& network, const MeshCollectives& part, const options::Lora& lora) {
    network.add_lora(lora, 5);
    ASSERT_EQ(network.lora().size(), lora_.size());
    for (size_t i = 0; i < lora_.size(); ++i) {
      const ResolvedLora& r = lora_[i];
      std::vector<float> b(static_cast<size_t>(r.target.out * r.rank));
      fill_values(6, i, 0.3f, b.data(), r.target.out * r.rank);
      const std::vector<float> own = cut(local_slice(part.local(), r.target, model::Role::lora_b, r.rank), b.data());
      ASSERT_EQ(own.size(), network.lora()[i].b.size());
      std::copy(own.begin(), own.end(), network.lora()[i].b.begin());
    }
  }

  // --- Batch axes ---

  int groups() const {
    int n = 1;
    for (int a = 0; a < form_->axes(); ++a)
      if (form_->batch() >> a & 1) n *= form_->size(a);
    return n;
  }
  int group_of(const Communicator& port) const {
    int index = 0;
    for (int a = 0; a < form_->axes(); ++a)
      if (form_->batch() >> a & 1) index = index * form_->size(a) + port.rank(a);
    return index;
  }
  int first_row(int rows, const Communicator& port) const {
    return std::min(rows, group_of(port) * ((rows + groups() - 1) / groups()));
  }
  OwnedBatch rows_of(const OwnedBatch& b, const Communicator& port) const {
    const int each = (b.rows + groups() - 1) / groups(), first = first_row(b.rows, port);
    const int rows = std::min(b.rows, first + each) - first;
    const auto part = [&](const std::vector<int>& v) {
      return std::vector<int>(v.begin() + first * b.len, v.begin() + (first + rows) * b.len);
    };
    return {rows, b.len, part(b.ids), part(b.targets), part(b.positions), part(b.segments)};
  }
  size_t leader(size_t device) { return leader(device, form_->model()); }
  size_t leader(size_t device, mesh::AxisSet axes) {  // the first along them
    size_t first = device;
    for (int a = 0; a < form_->axes(); ++a)
      if (axes >> a & 1) first = static_cast<size_t>(communicators_.port(static_cast<int>(first)).peer(a, 0));
    return first;
  }
  bool first_of_group(size_t device) { return leader(device) == device; }

  // --- Gradients: parts of a sum and parts of a tensor are added, whole ones are equal on all devices of a group ---

  void add(Outcome& out, const std::string& name, const mesh::PlacedTensor& placed, std::int64_t size, size_t parameter,
           const std::function<LocalSlice(const MeshCollectives&)>& slice) {
    std::vector<float>& whole = out.gradients[name];
    whole.assign(static_cast<size_t>(size), 0.0f);
    // Along the axes of its block every device has a part of the tensor or of the sum; along others the same.
    const mesh::Block block = mesh::block_of(placed.base);
    const mesh::AxisSet parts = is_router(placed.base) || block == mesh::Block::none ? 0 : form_->parallel(placed);
    for (size_t d = 0; d < parts_.size(); ++d) {
      const std::span<const float> own = networks_[d]->parameters()[parameter].grad;
      const LocalSlice s = slice(*parts_[d]);
      ASSERT_EQ(static_cast<std::int64_t>(own.size()), s.elements()) << name;
      if (const size_t first = leader(d, form_->model() & ~parts); first == d) {
        join(s, own.data(), whole.data());
      } else {
        const std::span<const float> same = networks_[first]->parameters()[parameter].grad;
        EXPECT_EQ(std::memcmp(own.data(), same.data(), own.size_bytes()), 0) << name << " on device " << d;
      }
    }
  }
  static bool is_router(model::Role r) {
    return r == model::Role::router_proj || r == model::Role::router_scale || r == model::Role::per_expert_scale;
  }

  void collect(Outcome& out) {
    size_t parameter = 0;
    if (trial_.method == model::TrainMethod::full) {
      for (size_t i = 0; i < whole_.tensors().size(); ++i) {
        const model::Tensor& t = whole_.tensors()[i];
        if (t.is_buffer) continue;
        add(out, t.name, placement_.tensors[i], t.elements(), parameter++,
            [&](const MeshCollectives& p) { return local_slice(p.local(), t); });
      }
      return;
    }
    for (size_t i = 0; i < lora_.size(); ++i)
      for (const model::Role role : {model::Role::lora_a, model::Role::lora_b}) {
        const mesh::PlacedTensor& placed = placement_.adapters[2 * i + (role == model::Role::lora_b)];
        const std::int64_t side = role == model::Role::lora_a ? lora_[i].target.in : lora_[i].target.out;
        add(out, placed.name, placed, side * lora_[i].rank, parameter++,
            [&](const MeshCollectives& p) { return local_slice(p.local(), lora_[i].target, role, lora_[i].rank); });
      }
  }

  model::Config config_;
  Trial trial_;
  model::TensorInventory whole_;
  mesh::Mesh mesh_;
  CommunicatorGroup communicators_;
  mesh::Placement placement_;
  std::unique_ptr<mesh::ComputeSharding> form_;
  std::vector<ResolvedLora> lora_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<MeshCollectives>> parts_;
  std::vector<std::unique_ptr<Network>> networks_;
};

// The same model on one device.
class WholeModel {
 public:
  WholeModel(const model::Config& config, const Trial& trial)
      : trial_(trial), device_(Bytes(0), 1), network_(config, device_, trial.type) {
    network_.load({.f32 =
                       [&](size_t index, std::int64_t first, std::span<float> out) {
                         const Rng rng{3, index};
                         for (size_t i = 0; i < out.size(); ++i)
                           out[i] = trial.scale * rng.normal_at(static_cast<std::uint64_t>(first) + i);
                       },
                   .bf16 = {}});
    if (trial.method == model::TrainMethod::lora) {
      options::Lora lora = all_projections(trial.rank, trial.dropout);
      lora.targets = trial.targets;
      network_.add_lora(lora, 5);
      size_t i = 0;
      for (const LoraTensors& m : network_.lora())
        fill_values(6, i++, 0.3f, m.b.data(), static_cast<std::int64_t>(m.b.size()));
    }
    network_.set_trainable(trial.method);
  }
  MeshModel::Outcome step(const OwnedBatch& batch) {
    const LossSum loss = network_.forward_backward(batch, trial_.step);
    MeshModel::Outcome out{loss.sum, loss.tokens, {}};
    for (const TrainableTensor& p : network_.parameters()) out.gradients[p.name].assign(p.grad.begin(), p.grad.end());
    return out;
  }
  Network& network() { return network_; }

 private:
  Trial trial_;
  Device device_;
  Network network_;
};

struct Distance {  // relative, of gradients
  double all = 0, worst = 0;
  std::string where{};  // the tensor of the worst
};
inline Distance distance(const MeshModel::Outcome& a, const MeshModel::Outcome& b) {
  Distance out;
  double size = 0, apart = 0;
  for (const auto& [name, values] : a.gradients)
    for (const float v : values) size += static_cast<double>(v) * static_cast<double>(v);
  for (const auto& [name, values] : a.gradients) {
    const auto found = b.gradients.find(name);
    if (found == b.gradients.end() || found->second.size() != values.size()) return {1e9, 1e9, name + " is missing"};
    double difference = 0, own = 1e-10 * size;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto x = static_cast<double>(values[i]), y = static_cast<double>(found->second[i]);
      difference += (x - y) * (x - y);
      own += x * x;
    }
    apart += difference;
    if (const double one = std::sqrt(difference / own); !(one <= out.worst)) out.worst = one, out.where = name;
  }
  out.all = std::sqrt(apart / size);
  return out;
}

}  // namespace mw::engine::test
