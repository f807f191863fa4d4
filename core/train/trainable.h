// SPDX-License-Identifier: Apache-2.0
// What a run trains, and the size of the file that it saves. Plain values; any thread.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/base/json.h"
#include "core/base/units.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/mesh/layout/placement.h"
#include "core/model/inventory.h"

namespace mw::train {

struct Trainable {
  std::int64_t params = 0, of = 0;  // trained parameters; parameters of the base model
  Bytes file{};                     // adapter_model.safetensors in f32, or model.safetensors of full training
  double share() const { return of > 0 ? static_cast<double>(params) / static_cast<double>(of) : 0; }
  bool operator==(const Trainable&) const = default;
};
// Of LoRA with these adapters, to the byte of the checkpoint; names and layout of PEFT.
Trainable trainable_adapters(const model::TensorInventory& inventory, std::span<const mesh::AdapterShape> adapters);
// Of full training that saves its weights in this type.
Trainable trainable_weights(const model::TensorInventory& inventory, formats::TensorDType saved);

std::string to_text(const Trainable& trainable);  // "3.19M parameters, 0.122 %"
Json to_json(const Trainable& trainable);         // {params, share, bytes}
// Reads to_json() from the "trainable" of a Started event; empty if the info has none.
std::optional<Trainable> trainable_of(const Json& started_info);

}  // namespace mw::train
