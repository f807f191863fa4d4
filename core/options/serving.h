// SPDX-License-Identifier: Apache-2.0
// A server: its scheduler, cache and adapters. Plain values.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/enum_names.h"
#include "core/model/types.h"

namespace mw::options {

enum class SchedulingPolicy { fcfs, priority };
enum class Sampling { greedy, top_k_top_p };  // how a server draws tokens from the logits

struct Serving {
  std::optional<model::Stack> stack;
  int max_num_seqs = 0, max_model_len = 0, max_num_batched_tokens = 0;
  bool sets_max_model_len = false;  // whether the document sets serve.max_model_len
  model::DType kv_dtype{}, products{};
  std::optional<model::DType> weight_dtype;  // empty: train.dtype
  bool sliding_window_kv = false, async_scheduling = false, prefix_cache = false, chunked_prefill = false;
  Sampling sampling{};
  double memory_utilisation = 0;
  int input_len = 0, output_len = 0;
  std::string target;  // of serving a trained model
  double usd_per_chip_hour = 0;
  std::vector<double> hours;
  int block_size = 0;
  SchedulingPolicy policy{};
  double kv_gib = 0;
  int queue = 0;
  std::vector<std::pair<std::string, std::filesystem::path>> adapters;  // name, folder
};

}  // namespace mw::options

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::options::SchedulingPolicy>{"fcfs", "priority"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::options::Sampling>{"greedy", "top_k_top_p"};
