// SPDX-License-Identifier: GPL-3.0-or-later
// Tensors of the smallest fixture, used to read adapters.
#pragma once
#include "core/formats/huggingface/hf_weights.h"
#include "tests/readers/reader.h"

namespace mw::readers {

inline const model::TensorInventory& tiny() {
  static const model::TensorInventory kTiny(formats::read_config(std::filesystem::path(MW_FIXTURES) / "gemma3_tiny"));
  return kTiny;
}

}  // namespace mw::readers
