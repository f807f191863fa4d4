// SPDX-License-Identifier: Apache-2.0
// A LoRA that Tunix (Qwix) trained, from its Orbax checkpoint, in PEFT's form: A [r,in], B [out,r]
// (qwix/_src/providers/lora.py).
#pragma once
#include <optional>

#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/orbax/orbax.h"
#include "core/formats/peft/peft_adapter.h"

namespace mw::formats {

struct TunixAdapter {
  Adapter adapter;
  std::filesystem::path item;  // the folder it was read from
  long step = -1;
  std::vector<std::string> notes{};  // what a reader of the result should know: layers without K, one A for K and V
};

// `path`: a root (its last finished step), a step or an item; of several items the one with LoRA arrays. alpha: where
// the checkpoint does not say it (Qwix does not write it); never guessed. Throws Error ADAPTER for LoRA arrays of
// another model, shapes that do not fit, alpha unknown; ORBAX for what is damaged.
TunixAdapter read_tunix_adapter(const std::filesystem::path& path, const model::TensorInventory& inventory,
                                std::optional<float> alpha);

}  // namespace mw::formats
