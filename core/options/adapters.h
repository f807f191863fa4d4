// SPDX-License-Identifier: Apache-2.0
// LoRA adapters. Plain values.
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace mw::options {

struct Lora {
  int rank = 16;
  double alpha = 16, dropout = 0;
  bool rslora = false;               // scaling alpha/sqrt(r) instead of alpha/r
  std::vector<std::string> targets;  // of q_proj k_proj v_proj o_proj gate_proj up_proj down_proj
  // Overrides for modules whose path matches the pattern: the regex matches the whole path, or its end after a dot.
  std::vector<std::pair<std::string, int>> rank_pattern{};
  std::vector<std::pair<std::string, float>> alpha_pattern{};
  // DoRA (arXiv 2402.09353) as PEFT's use_dora computes it: the rows of W + scaling B A get trained lengths.
  bool dora = false;
  // LoRA+ (arXiv 2402.12354): the learning rate of B, and of DoRA's lengths, as a multiple of A's.
  double plus_ratio = 1;
  std::string module_path{};        // modules of exported recipes; empty: from the targets
  std::filesystem::path adapter{};  // PEFT folder to start from
};

}  // namespace mw::options
