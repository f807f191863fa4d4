// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/lora.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/pattern.h"

namespace mw::engine {
namespace {

// PEFT: the whole module path, or its end after a dot, matches the pattern.
bool matches(const std::string& module, const std::string& pattern) {
  try {
    return Pattern("(.*\\.)?(" + pattern + ")").matches(module);
  } catch (const Error& e) {
    throw Error("LORA", "a rank or alpha pattern is not a regular expression",
                {.found = pattern, .expected = e.problem().message});
  }
}

template <class T>
T value_for(const std::string& module, const std::vector<std::pair<std::string, T>>& patterns, T otherwise) {
  for (const auto& [pattern, value] : patterns)
    if (matches(module, pattern)) return value;
  return otherwise;
}

void check(const options::Lora& o) {
  static constexpr const char* kNames[kProjections] = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                                       "gate_proj", "up_proj", "down_proj"};
  if (o.targets.empty())
    throw Error("LORA", "no LoRA targets", {.place = "lora.targets", .expected = "at least one projection"});
  for (const std::string& t : o.targets)
    if (std::find(std::begin(kNames), std::end(kNames), t) == std::end(kNames))
      throw Error("LORA", "an unknown LoRA target",
                  {.place = "lora.targets",
                   .found = t,
                   .expected = "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj or down_proj"});
  if (!(o.dropout >= 0 && o.dropout < 1))
    throw Error("LORA", "LoRA dropout is not a probability below 1",
                {.place = "lora.dropout", .found = std::to_string(o.dropout)});
  if (o.dora && o.dropout > 0)
    throw Error("LORA", "DoRA is computed without dropout",
                {.place = "lora.dropout",
                 .found = std::to_string(o.dropout),
                 .expected = "0",
                 .fix = "set lora.dropout to 0, or lora.dora to false"});
  if (!(o.plus_ratio > 0))
    throw Error("LORA", "the learning rate of B is not above 0",
                {.place = "lora.plus_ratio", .found = std::to_string(o.plus_ratio)});
}

}  // namespace

std::vector<ResolvedLora> resolve_lora(const model::TensorInventory& inventory, const options::Lora& options) {
  check(options);
  std::vector<ResolvedLora> resolved;
  for (const model::LoraTarget& t : inventory.lora_targets()) {
    if (std::find(options.targets.begin(), options.targets.end(), model::hf_module_name(t.role)) ==
        options.targets.end())
      continue;
    const int rank = value_for(t.module, options.rank_pattern, options.rank);
    const float alpha = value_for(t.module, options.alpha_pattern, static_cast<float>(options.alpha));
    if (rank < 1) throw Error("LORA", "a LoRA rank below 1", {.place = t.module, .found = std::to_string(rank)});
    const float scaling = alpha / (options.rslora ? std::sqrt(static_cast<float>(rank)) : static_cast<float>(rank));
    resolved.push_back({t, rank, alpha, scaling});
  }
  return resolved;
}

LoraInit::LoraInit(std::uint64_t seed, int layer, Projection projection, std::int64_t whole_in)
    : rng{seed, 0x4c6f5241, static_cast<std::uint64_t>(layer), static_cast<std::uint64_t>(projection)},
      bound(1.0f / std::sqrt(static_cast<float>(whole_in))) {}

}  // namespace mw::engine
