// SPDX-License-Identifier: Apache-2.0
#include "core/train/sliced_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/engine/distributed/cluster.h"
#include "core/engine/kernels/gemm.h"
#include "core/train/merge.h"

namespace mw::train {
namespace {

// The modules of one layer, renumbered for a model with only this layer.
formats::PeftAdapter of_layer(const formats::PeftAdapter& whole, int layer, const model::TensorInventory& sliced) {
  formats::PeftAdapter part{.rank = whole.rank, .alpha = whole.alpha, .rslora = whole.rslora, .dora = whole.dora};
  for (const formats::AdapterModule& m : whole.modules) {
    if (m.target.layer != layer) continue;
    const auto targets = sliced.lora_targets();
    const auto same = std::find_if(targets.begin(), targets.end(),
                                   [&](const model::LoraTarget& t) { return t.role == m.target.role; });
    part.modules.push_back({*same, m.rank, m.alpha, m.a, m.b, m.m});
    part.targets.emplace_back(model::hf_module_name(same->role));
    part.rank_pattern.emplace_back(same->module, m.rank);
    part.alpha_pattern.emplace_back(same->module, m.alpha);
  }
  return part;
}

}  // namespace

struct SlicedModel::Slice {
  std::unique_ptr<engine::Cluster> cluster;
  engine::Network& network() const { return cluster->network(0); }
};

struct SlicedModel::Product {
  explicit Product(int threads) : device(Bytes(0), threads), gemm(device, model::WeightType::f32) {}
  engine::Device device;
  engine::Gemm gemm;
};

bool SlicedModel::possible(const model::Config& config) {
  return config.ple_dim == 0 && config.tied_embeddings && config.layers.size() > 1 &&
         std::all_of(config.layers.begin(), config.layers.end(), [](const model::Layer& l) { return l.kv_donor < 0; });
}

Bytes SlicedModel::memory(const model::Config& config) {
  const model::TensorInventory inventory(config);
  std::vector<std::int64_t> elements(config.layers.size());
  for (const model::Tensor& t : inventory.tensors())
    if (t.layer >= 0) elements[static_cast<size_t>(t.layer)] += t.elements();
  const std::int64_t largest = *std::max_element(elements.begin(), elements.end());
  return Bytes(4 * largest + largest / 2 + 2 * kHead.value);
}

SlicedModel::SlicedModel(const std::filesystem::path& folder, const formats::PeftAdapter* adapter, int threads,
                         Bytes head)
    : config_(formats::read_config(folder)),
      inventory_(config_),
      weights_(folder, inventory_),
      adapter_(adapter),
      threads_(thread_count(threads)),
      head_(head),
      product_(adapter ? new Product(threads_) : nullptr) {}
SlicedModel::~SlicedModel() = default;

// W += scaling B A and DoRA's lengths of the rows, for the elements [first, first + values.size()) of a weight, which
// are whole rows.
void SlicedModel::add_product(const model::Tensor& tensor, int layer, std::int64_t first,
                              std::span<float> values) const {
  for (const formats::AdapterModule& m : adapter_->modules) {
    if (m.target.layer != layer || m.target.role != tensor.role) continue;
    const auto rank = static_cast<float>(m.rank);
    const float scaling = m.alpha / (adapter_->rslora ? std::sqrt(rank) : rank);
    const std::int64_t columns = m.target.in, row = first / columns, rows = std::ssize(values) / columns;
    product_->gemm.nn({rows, columns, m.rank}, m.b.data() + row * m.rank, {.f32 = m.a.data()}, values.data(),
                      {.alpha = scaling, .beta = 1});
    if (adapter_->dora) scale_rows(m, row, values);
  }
}

SlicedModel::Slice SlicedModel::slice(int layer, Rows rows) const {
  model::Config config = config_;
  config.layers = {config_.layers[static_cast<size_t>(layer)]};
  config.vocab = static_cast<int>(rows.size());
  Slice out{engine::Cluster::create(config, {.weights = model::WeightType::f32,
                                             .use = engine::NetworkUse::inference,
                                             .capacity = machine_memory(),
                                             .threads = threads_})};
  const auto tensors = out.cluster->inventory().tensors();
  const std::int64_t dim = config.dim;
  const auto read = [&](size_t index, std::int64_t first, std::span<float> values) {
    const model::Tensor& t = tensors[index];
    const model::Tensor* from = inventory_.find(t.role, t.layer < 0 ? -1 : layer);
    const auto source = static_cast<size_t>(from - inventory_.tensors().data());
    if (t.role != model::Role::embed) {
      weights_.read_f32(source, first, values);
      return;
    }
    while (!values.empty()) {
      const std::int64_t column = first % dim;
      const auto n = std::min(values.size(), static_cast<size_t>(dim - column));
      weights_.read_f32(source, std::int64_t{rows[static_cast<size_t>(first / dim)]} * dim + column, values.first(n));
      values = values.subspan(n), first += static_cast<std::int64_t>(n);
    }
  };
  out.cluster->load({.f32 = read, .bf16 = {}});
  return out;
}

// A use changes the slice for all later ones, therefore AdapterUse has their order.
void SlicedModel::use_adapter(Slice& slice, int layer, AdapterUse use) const {
  if (!adapter_ || use == AdapterUse::none) return;
  engine::Cluster& cluster = *slice.cluster;
  if (use == AdapterUse::beside) {
    if (const formats::PeftAdapter part = of_layer(*adapter_, layer, cluster.inventory()); !part.modules.empty())
      attach_adapter(part, 0, cluster);
    return;
  }
  for (size_t i = 0; i < cluster.trained().size(); ++i)  // the adapter beside them
    cluster.write(i, engine::Cluster::Part::value, std::vector<float>(static_cast<size_t>(cluster.trained()[i].size)));
  cluster.values_written();
  cluster.load(
      {.f32 = [&](size_t index, std::int64_t first,
                  std::span<float> values) { add_product(cluster.inventory().tensors()[index], layer, first, values); },
       .bf16 = {},
       .is_update = true});
  // DoRA's magnitudes become the lengths of the merged rows, which then change nothing.
  if (adapter_->dora && !cluster.trained().empty())
    cluster.add_lora(lora_options(of_layer(*adapter_, layer, cluster.inventory())), 0);
}

std::vector<float> SlicedModel::logits(const engine::TokenBatch& batch) const {
  return std::move(logits(batch, std::array{adapter_ ? AdapterUse::beside : AdapterUse::none}).front());
}

std::vector<std::vector<float>> SlicedModel::logits(const engine::TokenBatch& batch, std::span<const AdapterUse> uses,
                                                    const CountProgress& progress, const OnHidden& on_hidden) const {
  const size_t tokens = static_cast<size_t>(batch.rows) * static_cast<size_t>(batch.len);
  const auto dim = static_cast<size_t>(config_.dim), vocab = static_cast<size_t>(config_.vocab);
  std::vector<int> ids(tokens);  // indices into the rows of a slice
  engine::TokenBatch sliced = batch;
  sliced.ids = ids;
  const std::vector<int> targets(tokens, -1);
  sliced.targets = targets;
  std::vector<std::vector<float>> x(uses.size()), out(uses.size(), std::vector<float>(tokens * vocab));
  std::vector<float> next(tokens * dim), piece;
  const auto most = std::clamp<size_t>(static_cast<size_t>(head_.value) / (dim * sizeof(float)), 1, vocab);
  const int last = static_cast<int>(config_.layers.size()) - 1;
  const long slices = last + static_cast<long>((vocab + most - 1) / most);
  long done = 0;
  const auto went_on = [&] {
    if (progress) progress(++done, slices);
  };
  const auto for_uses = [&](int layer, Rows rows, const auto& each) {
    Slice part = slice(layer, std::move(rows));
    for (size_t use = 0; use < uses.size(); ++use) {
      use_adapter(part, layer, uses[use]);
      each(use, part.network());
    }
  };
  const auto behind = [&](int layer, Rows rows) {
    for_uses(layer, std::move(rows), [&](size_t use, engine::Network& network) {
      network.hidden(sliced, x[use], next);
      if (on_hidden) on_hidden(use, next);
      if (layer == last) return;
      x[use].resize(next.size());
      x[use].swap(next);
    });
  };

  std::iota(ids.begin(), ids.end(), 0);
  behind(0, Rows(batch.ids.begin(), batch.ids.end()));
  std::fill(ids.begin(), ids.end(), 0);
  went_on();
  for (int layer = 1; layer < last; ++layer) {
    behind(layer, {0});
    went_on();
  }
  if (on_hidden) behind(last, {0});
  for (size_t first = 0; first < vocab; first += most) {
    Rows rows(std::min(most, vocab - first));
    std::iota(rows.begin(), rows.end(), static_cast<int>(first));
    const size_t width = rows.size();
    piece.resize(tokens * width);
    for_uses(last, std::move(rows), [&](size_t use, engine::Network& network) {
      network.logits_from(sliced, x[use], piece);
      for (size_t i = 0; i < tokens; ++i)
        std::copy_n(piece.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                    out[use].begin() + static_cast<std::ptrdiff_t>(i * vocab + first));
    });
    went_on();
  }
  return out;
}

}  // namespace mw::train
