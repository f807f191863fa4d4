// SPDX-License-Identifier: Apache-2.0
// Which projections get a LoRA adapter, with which rank and alpha (PEFT's rules), and how they start.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/pattern.h"
#include "core/engine/transformer/core.h"

namespace mw::engine {
namespace {

// PEFT: the whole module path, or its end after a dot, matches the pattern.
bool matches(const std::string& module, const std::string& pattern) {
  try {
    return Pattern("(.*\\.)?(" + pattern + ")").matches_all(module);
  } catch (const Error& e) {
    throw Error({.id = "LORA",
                 .message = "a rank or alpha pattern is not a regular expression",
                 .found = pattern,
                 .expected = e.problem().message});
  }
}

template <class T>
T value_for(const std::string& module, const std::vector<std::pair<std::string, T>>& patterns, T otherwise) {
  for (const auto& [pattern, value] : patterns)
    if (matches(module, pattern)) return value;
  return otherwise;
}

void check(const LoraOptions& o) {
  static constexpr const char* kNames[kProjections] = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                                       "gate_proj", "up_proj", "down_proj"};
  if (o.targets.empty())
    throw Error(
        {.id = "LORA", .message = "no LoRA targets", .place = "lora.targets", .expected = "at least one projection"});
  for (const std::string& t : o.targets)
    if (std::find(std::begin(kNames), std::end(kNames), t) == std::end(kNames))
      throw Error({.id = "LORA",
                   .message = "an unknown LoRA target",
                   .place = "lora.targets",
                   .found = t,
                   .expected = "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj or down_proj"});
  if (!(o.dropout >= 0 && o.dropout < 1))
    throw Error({.id = "LORA",
                 .message = "LoRA dropout is not a probability below 1",
                 .place = "lora.dropout",
                 .found = std::to_string(o.dropout)});
}

}  // namespace

Projection projection_of(model::Role role) {
  switch (role) {
    case model::Role::q_proj:
      return Projection::q;
    case model::Role::k_proj:
      return Projection::k;
    case model::Role::v_proj:
      return Projection::v;
    case model::Role::o_proj:
      return Projection::o;
    case model::Role::gate_proj:
      return Projection::gate;
    case model::Role::up_proj:
      return Projection::up;
    default:
      return Projection::down;
  }
}

std::vector<ResolvedLora> resolve_lora(const model::TensorInventory& inventory, const LoraOptions& options) {
  check(options);
  std::vector<ResolvedLora> resolved;
  for (const model::LoraTarget& t : inventory.lora_targets()) {
    if (std::find(options.targets.begin(), options.targets.end(), model::hf_module_name(t.role)) ==
        options.targets.end())
      continue;
    const int rank = value_for(t.module, options.rank_pattern, options.rank);
    const float alpha = value_for(t.module, options.alpha_pattern, options.alpha);
    if (rank < 1)
      throw Error({.id = "LORA", .message = "a LoRA rank below 1", .place = t.module, .found = std::to_string(rank)});
    const float scaling = alpha / (options.rslora ? std::sqrt(static_cast<float>(rank)) : static_cast<float>(rank));
    resolved.push_back({t, rank, alpha, scaling});
  }
  return resolved;
}

namespace {

// Of a projection's inputs those that the device has: of heads or columns in parts.
struct Inputs {
  std::int64_t whole, first;
};

Inputs inputs_of(const CollectiveHooks* part, const model::LoraTarget& t) {
  if (!part) return {t.in, 0};
  const model::Layer& l = part->whole_config().layers[static_cast<size_t>(t.layer)];
  const mesh::LocalLayer& own = part->local().layers[static_cast<size_t>(t.layer)];
  if (t.role == model::Role::o_proj) return {std::int64_t{l.heads} * l.head_dim, own.heads.begin * l.head_dim};
  if (t.role == model::Role::down_proj) return {l.mlp_dim, own.mlp.begin};
  return {t.in, 0};
}

}  // namespace

void Core::make_adapters(const LoraOptions& options) {
  std::vector<Adapter> added;
  std::vector<LoraModule> described;
  for (const ResolvedLora& r : resolve_lora(inventory, options)) {
    const model::LoraTarget& t = r.target;
    const Inputs inputs = inputs_of(part, t);
    added.push_back({.layer = t.layer,
                     .projection = projection_of(t.role),
                     .in = t.in,
                     .out = t.out,
                     .rank = r.rank,
                     .scaling = r.scaling,
                     .whole_in = inputs.whole,
                     .first_in = inputs.first});
    described.push_back({.target = t, .rank = r.rank, .alpha = r.alpha, .a = {}, .b = {}});
  }
  memory = {};
  adapter_values = {};
  adapters = std::move(added);
  modules = std::move(described);
  lora_dropout = options.dropout;
  parameters.clear();
  gradients = {};
  trainable = full = false;
  for (LayerParts& p : layers) std::fill(std::begin(p.adapter), std::end(p.adapter), nullptr);
  for (Weight& w : weights) w.gradient = nullptr;
  for (Adapter& a : adapters) layers[static_cast<size_t>(a.layer)].adapter[static_cast<size_t>(a.projection)] = &a;
}

LoraStart::LoraStart(std::uint64_t seed, int layer, Projection projection, std::int64_t whole_in)
    : rng{seed, 0x4c6f5241, static_cast<std::uint64_t>(layer), static_cast<std::uint64_t>(projection)},
      bound(1.0f / std::sqrt(static_cast<float>(whole_in))) {}  // kaiming_uniform(a = sqrt 5)

void Core::add_lora(const LoraOptions& options, std::uint64_t seed) {
  make_adapters(options);
  std::int64_t total = 0;
  for (const Adapter& a : adapters) total += aligned_floats(a.rank * a.in) + aligned_floats(a.out * a.rank);
  adapter_values = Buffer<float>(device.arena, MemoryCategory::adapters, static_cast<size_t>(total), "LoRA adapters");
  float* next = adapter_values.data();
  for (size_t i = 0; i < adapters.size(); ++i) {
    Adapter& a = adapters[i];
    a.a = next;
    a.b = a.a + aligned_floats(a.rank * a.in);
    next = a.b + aligned_floats(a.out * a.rank);
    modules[i].a = {a.a, static_cast<size_t>(a.rank * a.in)};
    modules[i].b = {a.b, static_cast<size_t>(a.out * a.rank)};
    const LoraStart start(seed, a.layer, a.projection, a.whole_in);
    for (std::int64_t row = 0; row < a.rank; ++row)
      for (std::int64_t j = 0; j < a.in; ++j) a.a[row * a.in + j] = start.at(row * a.whole_in + a.first_in + j);
  }
  list_adapters({});
}

// Trainables: A and B of each adapter, with their gradients where there are any.
void Core::list_adapters(std::span<float> sums) {
  parameters.clear();
  size_t next = 0;
  for (size_t i = 0; i < adapters.size(); ++i) {
    Adapter& a = adapters[i];
    const std::string name =
        "layers." + std::to_string(a.layer) + "." + std::string(model::hf_module_name(modules[i].target.role));
    const auto add = [&](float*& grad, const char* suffix, std::span<float> value) {
      const std::span<float> own = sums.empty() ? sums : sums.subspan(next, value.size());
      next += static_cast<size_t>(aligned_floats(static_cast<std::int64_t>(value.size())));
      grad = own.data();
      parameters.push_back({name + suffix, value, own, true});
    };
    add(a.da, ".lora_a", modules[i].a);
    add(a.db, ".lora_b", modules[i].b);
  }
}

}  // namespace mw::engine
