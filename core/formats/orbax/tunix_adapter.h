// SPDX-License-Identifier: Apache-2.0
// Reads LoRA adapters of Tunix (Qwix) from an Orbax checkpoint, in the form of PEFT: A [rank, in], B [out, rank]
// (qwix/_src/providers/lora.py).
#pragma once
#include <optional>

#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/orbax/orbax.h"
#include "core/formats/peft/peft_adapter.h"

namespace mw::formats {

struct TunixAdapter {
  PeftAdapter adapter;
  std::filesystem::path item;  // source folder
  long step = -1;
  std::vector<std::string> notes{};  // for the user, e.g. layers without an adapter of K, one A shared by K and V
};

// `path` is a root (reads the last finished step), a step or an item; reads the item with LoRA arrays. `alpha` is
// required unless the checkpoint contains it (Qwix does not write it). Throws ADAPTER if the arrays do not match the
// model or alpha is unknown, and ORBAX if the checkpoint is damaged.
TunixAdapter read_tunix_adapter(const std::filesystem::path& path, const model::TensorInventory& inventory,
                                std::optional<float> alpha);

}  // namespace mw::formats
