// SPDX-License-Identifier: Apache-2.0
#include "core/train/sliced_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mw::train {
namespace {

// The modules of one layer, renumbered for a model with only this layer.
formats::Adapter of_layer(const formats::Adapter& whole, int layer, const model::TensorInventory& sliced) {
  formats::Adapter part{.rank = whole.rank, .alpha = whole.alpha, .rslora = whole.rslora};
  for (const formats::AdapterModule& m : whole.modules) {
    if (m.target.layer != layer) continue;
    const auto targets = sliced.lora_targets();
    const auto same = std::find_if(targets.begin(), targets.end(),
                                   [&](const model::LoraTarget& t) { return t.role == m.target.role; });
    part.modules.push_back({*same, m.rank, m.alpha, m.a, m.b});
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

SlicedModel::SlicedModel(const std::filesystem::path& folder, const formats::Adapter* adapter, int threads, Bytes head,
                         AdapterUse use)
    : config_(formats::read_config(folder)),
      inventory_(config_),
      weights_(folder, inventory_),
      adapter_(adapter),
      threads_(thread_count(threads)),
      head_(head),
      use_(use) {}

// W += scaling B A, for the elements [first, first + values.size()) of a weight.
void SlicedModel::add_product(const model::Tensor& tensor, int layer, std::int64_t first,
                              std::span<float> values) const {
  for (const formats::AdapterModule& m : adapter_->modules) {
    if (m.target.layer != layer || m.target.role != tensor.role) continue;
    const auto rank = static_cast<float>(m.rank);
    const float scaling = m.alpha / (adapter_->rslora ? std::sqrt(rank) : rank);
    for (size_t i = 0; i < values.size();) {
      const std::int64_t element = first + static_cast<std::int64_t>(i), row = element / m.target.in,
                         column = element % m.target.in;
      const size_t n = std::min(values.size() - i, static_cast<size_t>(m.target.in - column));
      for (int r = 0; r < m.rank; ++r) {
        const float b = scaling * m.b[static_cast<size_t>(row * m.rank + r)];
        const float* a = m.a.data() + r * m.target.in + column;
        for (size_t k = 0; k < n; ++k) values[i + k] += b * a[k];
      }
      i += n;
    }
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
      if (adapter_ && use_ == AdapterUse::folded) add_product(t, layer, first, values);
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
  if (adapter_ && use_ == AdapterUse::beside)
    if (const formats::Adapter part = of_layer(*adapter_, layer, out.cluster->inventory()); !part.modules.empty())
      attach_adapter(part, 0, *out.cluster);
  return out;
}

std::vector<float> SlicedModel::logits(const engine::TokenBatch& batch, const Progress& progress,
                                       const OnHidden& on_hidden) const {
  const size_t tokens = static_cast<size_t>(batch.rows) * static_cast<size_t>(batch.len);
  const auto dim = static_cast<size_t>(config_.dim), vocab = static_cast<size_t>(config_.vocab);
  std::vector<int> ids(tokens);  // indices into the rows of a slice
  engine::TokenBatch sliced = batch;
  sliced.ids = ids;
  const std::vector<int> targets(tokens, -1);
  sliced.targets = targets;
  std::vector<float> x(tokens * dim), next(tokens * dim);
  const auto most = std::clamp<size_t>(static_cast<size_t>(head_.value) / (dim * sizeof(float)), 1, vocab);
  const int last = static_cast<int>(config_.layers.size()) - 1;
  const long slices = last + static_cast<long>((vocab + most - 1) / most);
  long done = 0;
  const auto went_on = [&] {
    if (progress) progress(++done, slices);
  };

  std::iota(ids.begin(), ids.end(), 0);
  slice(0, Rows(batch.ids.begin(), batch.ids.end())).network().hidden(sliced, {}, x);
  std::fill(ids.begin(), ids.end(), 0);
  if (on_hidden) on_hidden(x);
  went_on();
  for (int layer = 1; layer < last; ++layer) {
    slice(layer, {0}).network().hidden(sliced, x, next);
    x.swap(next);
    if (on_hidden) on_hidden(x);
    went_on();
  }
  if (on_hidden) {
    slice(last, {0}).network().hidden(sliced, x, next);
    on_hidden(next);
  }
  std::vector<float> out(tokens * vocab), piece;
  for (size_t first = 0; first < vocab; first += most) {
    Rows rows(std::min(most, vocab - first));
    std::iota(rows.begin(), rows.end(), static_cast<int>(first));
    piece.resize(tokens * rows.size());
    slice(last, rows).network().logits_from(sliced, x, piece);
    for (size_t i = 0; i < tokens; ++i)
      std::copy_n(piece.begin() + static_cast<std::ptrdiff_t>(i * rows.size()), rows.size(),
                  out.begin() + static_cast<std::ptrdiff_t>(i * vocab + first));
    went_on();
  }
  return out;
}

}  // namespace mw::train
