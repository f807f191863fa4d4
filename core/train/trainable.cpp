// SPDX-License-Identifier: Apache-2.0
#include "core/train/trainable.h"

#include <algorithm>
#include <cmath>

#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/peft/peft_adapter.h"

namespace mw::train {

Trainable trainable_adapters(const model::TensorInventory& inventory, std::span<const mesh::AdapterShape> adapters) {
  Trainable out{.of = inventory.parameters()};
  std::vector<formats::AdapterRank> saved;
  for (const mesh::AdapterShape& a : adapters) {
    const auto targets = inventory.lora_targets();
    const auto target = std::find_if(targets.begin(), targets.end(), [&](const model::LoraTarget& t) {
      return t.role == a.role && t.layer == a.layer;
    });
    if (target == targets.end()) continue;
    out.params += a.rank * (target->in + target->out) + (a.dora ? target->out : 0);
    saved.push_back({*target, a.rank, a.dora});
  }
  out.file = Bytes(static_cast<std::int64_t>(formats::peft_file_size(saved)));
  return out;
}

Trainable trainable_weights(const model::TensorInventory& inventory, formats::TensorDType saved) {
  return {.params = inventory.parameters(),
          .of = inventory.parameters(),
          .file = Bytes(static_cast<std::int64_t>(formats::hf_weights_size(inventory, saved)))};
}

std::string to_text(const Trainable& t) {
  return count_text(static_cast<double>(t.params)) + " parameters, " + number_text(100 * t.share(), 3) + " %";
}

Json to_json(const Trainable& t) {
  return {{"params", t.params}, {"share", t.share()}, {"bytes", t.file.value}};
}

std::optional<Trainable> trainable_of(const Json& started_info) {
  const Json* found = started_info.is_object() ? find_member(started_info, "trainable") : nullptr;
  if (!found || !found->is_object()) return std::nullopt;
  const auto number = [&](const char* key) {
    const Json* value = find_member(*found, key);
    return value && value->is_number() && std::isfinite(value->get<double>()) ? value->get<double>() : 0.0;
  };
  const double params = number("params"), share = number("share"), bytes = number("bytes");
  if (params <= 0 || params > 1e15 || bytes < 0 || bytes > 1e18) return std::nullopt;
  return Trainable{.params = static_cast<std::int64_t>(params),
                   .of = share > 0 && share <= 1 ? std::llround(params / share) : 0,
                   .file = Bytes(static_cast<std::int64_t>(bytes))};
}

}  // namespace mw::train
