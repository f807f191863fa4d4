// SPDX-License-Identifier: Apache-2.0
#include "core/formats/orbax/tunix_adapter.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/units.h"
#include "core/formats/safetensors/safetensors.h"

namespace mw::formats {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kMostRank = 1 << 16;

constexpr FileErrors tunix_fault{"ADAPTER"};

struct Pair {
  const ZarrArray *a = nullptr, *b = nullptr;
};
using Pairs = std::map<std::string, Pair>;  // by path of the adapted weight: "layers.3.attn.q_einsum.w"

// Collects the arrays "....layers.3.attn.q_einsum.w_lora_a.value" and ..._lora_b.value.
Pairs lora_arrays(const OrbaxTree& tree) {
  constexpr std::string_view kValue = ".value", kA = "_lora_a", kB = "_lora_b", kLayers = "layers.";
  Pairs pairs;
  for (const ZarrArray& array : tree.arrays()) {
    std::string_view name = array.name;
    if (name.ends_with(kValue)) name.remove_suffix(kValue.size());
    if (!name.ends_with(kA) && !name.ends_with(kB)) continue;
    const bool first = name.ends_with(kA);
    name.remove_suffix(kA.size());
    if (const size_t at = name.find(kLayers); at != std::string_view::npos && (at == 0 || name[at - 1] == '.'))
      name.remove_prefix(at);
    Pair& pair = pairs[std::string(name)];
    const ZarrArray*& place = first ? pair.a : pair.b;
    if (place) tunix_fault(tree.folder(), array.name, "two arrays adapt the same weight", array.name, place->name);
    place = &array;
  }
  return pairs;
}

std::int64_t product(const std::vector<std::int64_t>& shape, size_t begin, size_t end) {
  std::int64_t n = 1;
  for (size_t d = begin; d < end; ++d) n *= shape[d];
  return n;
}

[[noreturn]] void misfit(const OrbaxTree& tree, const ZarrArray& array, const std::string& expected) {
  tunix_fault(tree.folder(), array.name, "the shape of an adapter does not match the model", shape_text(array.shape),
              expected, "choose the base model that the adapter was trained on");
}

// Transposes both arrays: Qwix multiplies from the right.
std::vector<float> transposed(const std::vector<float>& from, std::int64_t rows, std::int64_t cols,
                              std::int64_t stride) {
  std::vector<float> out(static_cast<size_t>(rows * cols));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j)
      out[static_cast<size_t>(j * rows + i)] = from[static_cast<size_t>(i * stride + j)];
  return out;
}

// The adapter of one projection; `slot` is its index in a combined Tunix tensor, whose parts share one A, or -1.
AdapterModule module_of(const OrbaxTree& tree, const Pair& pair, const model::LoraTarget& target, int slot) {
  const ZarrArray &a = *pair.a, &b = *pair.b;
  if (a.shape.size() < 2) misfit(tree, a, "[in, rank]");
  const std::int64_t rank = a.shape.back(), in = product(a.shape, 0, a.shape.size() - 1);
  const std::string wanted_a = "[" + std::to_string(target.in) + " inputs, rank]";
  if (in != target.in || rank < 1 || rank > kMostRank) misfit(tree, a, wanted_a);
  const std::string wanted_b =
      "[rank " + std::to_string(rank) + ", " + (slot >= 0 ? "2 or 3, " : "") + std::to_string(target.out) + " outputs]";
  if (b.shape.size() < 2 || b.shape.front() != rank) misfit(tree, b, wanted_b);
  const std::int64_t all = product(b.shape, 1, b.shape.size());
  const bool slots_fit =
      slot < 0 ? all == target.out : b.shape.size() >= 3 && slot < b.shape[1] && all == b.shape[1] * target.out;
  if (!slots_fit) misfit(tree, b, wanted_b);
  AdapterModule m;
  m.target = target;
  m.rank = static_cast<int>(rank);
  m.a = transposed(tree.read_floats(a), in, rank, rank);
  std::vector<float> values = tree.read_floats(b);
  if (slot > 0) values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(slot * target.out));
  m.b = transposed(values, rank, target.out, all);
  return m;
}

// alpha in the custom metadata of a step, if it is there.
std::optional<float> alpha_in(const fs::path& step) {
  const fs::path file = step / "_CHECKPOINT_METADATA";
  if (!path_exists(file)) return std::nullopt;
  const Json json = read_json(file);
  const Json custom = json.is_object() ? json.value("custom_metadata", Json()) : Json();
  for (const char* key : {"lora_alpha", "alpha"})
    if (custom.is_object() && custom.contains(key) && custom[key].is_number() && custom[key].get<double>() > 0)
      return custom[key].get<float>();
  return std::nullopt;
}

struct FoundAdapter {
  fs::path item, step_folder;
  long step = -1;
  std::unique_ptr<OrbaxTree> tree;
  Pairs pairs;
};

// Finds the item with LoRA arrays in the last finished step.
FoundAdapter find_adapter(const fs::path& path) {
  const OrbaxFolder folder = open_orbax(path);
  const OrbaxStep& last = folder.steps.back();
  std::string seen;
  for (const OrbaxItem& item : last.items) {
    auto tree = std::make_unique<OrbaxTree>(item.folder);
    Pairs pairs = lora_arrays(*tree);
    if (!pairs.empty() && item.name != "optimizer_state")
      return {item.folder, last.folder, last.step, std::move(tree), std::move(pairs)};
    seen += (seen.empty() ? "" : ", ") + (item.name.empty() ? item.folder.filename().string() : item.name) + " with " +
            std::to_string(tree->arrays().size()) + " arrays";
  }
  tunix_fault(last.folder, "", "the checkpoint contains no LoRA adapter", seen.empty() ? "no item" : seen,
              "arrays named ..._lora_a and ..._lora_b", "choose the checkpoint of the LoRA run, not of the base model");
}

// Throws unless every adapter is complete and belongs to a weight that can be merged.
void check_complete(const FoundAdapter& found, const model::TensorInventory& inventory) {
  std::set<std::string_view> known, adaptable;
  for (const model::Tensor& t : inventory.tensors()) known.insert(t.tunix_path);
  for (const model::LoraTarget& t : inventory.lora_targets())
    if (const model::Tensor* weight = inventory.find(t.role, t.layer)) adaptable.insert(weight->tunix_path);
  for (const auto& [path, pair] : found.pairs) {
    const ZarrArray& one = pair.a ? *pair.a : *pair.b;
    if (!pair.a || !pair.b)
      tunix_fault(found.tree->folder(), one.name, "one of the two arrays of an adapter is missing", "",
                  path + (pair.a ? "_lora_b" : "_lora_a"));
    if (!known.contains(path))
      tunix_fault(found.tree->folder(), one.name, "the model has no weight for this adapter", path,
                  "weights of this model", "choose the base model that the adapter was trained on");
    if (!adaptable.contains(path))
      tunix_fault(found.tree->folder(), one.name, "the adapted weight is not a linear projection", path,
                  "adapters of projections in attention and MLP", "train with a pattern that selects only projections");
  }
}

void describe(TunixAdapter& out, const model::TensorInventory& inventory) {
  const auto adapts = [&](model::Role role, int layer) {
    return std::any_of(out.adapter.modules.begin(), out.adapter.modules.end(),
                       [&](const AdapterModule& m) { return m.target.role == role && m.target.layer == layer; });
  };
  int without_k = 0;
  bool any_k = false;
  for (const model::LoraTarget& t : inventory.lora_targets())
    if (t.role == model::Role::k_proj) {
      any_k |= adapts(t.role, t.layer);
      without_k += !adapts(t.role, t.layer);
    }
  if (any_k && without_k > 0)
    out.notes.push_back(std::to_string(without_k) +
                        " layers have no adapter of K: the pattern of the training run did not include k_einsum");
  if (any_k) out.notes.push_back("K and V of a layer share one A, as in Qwix");
}

}  // namespace

TunixAdapter read_tunix_adapter(const fs::path& path, const model::TensorInventory& inventory,
                                std::optional<float> alpha) {
  const FoundAdapter found = find_adapter(path);
  check_complete(found, inventory);
  const std::optional<float> recorded = alpha_in(found.step_folder);
  if (recorded && alpha && *recorded != *alpha)
    tunix_fault(found.step_folder, "custom_metadata", "alpha differs from the value in the checkpoint",
                number_text(*recorded), number_text(*alpha), "remove --alpha");
  if (!recorded && !alpha)
    tunix_fault(found.step_folder, "alpha", "the checkpoint does not contain alpha", "nothing",
                "the alpha of the training run",
                "set --alpha to the value in the run's LoRA settings (Qwix: alpha; the scale is alpha / rank)");
  TunixAdapter out{.adapter = {}, .item = found.item, .step = found.step};
  out.adapter.alpha = recorded ? *recorded : *alpha;
  for (const model::LoraTarget& target : inventory.lora_targets()) {
    const model::Tensor* weight = inventory.find(target.role, target.layer);
    const auto at = weight ? found.pairs.find(weight->tunix_path) : found.pairs.end();
    if (at == found.pairs.end()) continue;
    out.adapter.modules.push_back(module_of(*found.tree, at->second, target, weight->tunix_slot));
    out.adapter.modules.back().alpha = out.adapter.alpha;
    const std::string name(model::hf_module_name(target.role));
    auto& targets = out.adapter.targets;
    if (std::find(targets.begin(), targets.end(), name) == targets.end()) targets.push_back(name);
  }
  out.adapter.rank = out.adapter.modules.front().rank;
  for (const AdapterModule& m : out.adapter.modules)
    if (m.rank != out.adapter.rank) out.adapter.rank_pattern.emplace_back(m.target.module, m.rank);
  describe(out, inventory);
  return out;
}

}  // namespace mw::formats
