// SPDX-License-Identifier: GPL-3.0-or-later
// A model folder for random weights, with sizes that common meshes divide; the tokenizer is the
// shipped one.
#pragma once
#include <filesystem>
#include <string>

#include "core/base/files.h"
#include "core/model/config.h"
#include "core/model/hf_config.h"
#include "tests/engine/families.h"
#include "tests/engine/tiny_model.h"

namespace mw::train::test {

inline std::filesystem::path random_model(const std::string& family, const std::filesystem::path& folder) {
  model::Config c = engine::test::tiny_config();
  c.vocab = 2048, c.dim = 64;
  c = engine::test::as_family(c, family);
  for (model::Layer& l : c.layers) l.heads = 8, l.kv_heads = 4, l.mlp_dim = 64;
  if (c.ple_dim > 0) c.ple_dim = 8;
  if (c.experts > 0) c.experts = 4, c.expert_dim = 16;
  write_file_atomically(folder / "config.json", model::to_hf_config(c).dump());
  return folder;
}

}  // namespace mw::train::test
