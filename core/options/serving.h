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

struct ServerLimits {
  int max_num_seqs = 64, max_model_len = 4096, max_num_batched_tokens = 2048;
  bool chunked_prefill = true;  // false: a prompt is computed in one step
  double memory_utilisation = 0.9;
  int input_len = 1024, output_len = 512;  // of the requests for which times are predicted
  Sampling sampling = Sampling::greedy;
};

struct Serving : ServerLimits {
  std::optional<model::Stack> stack;
  bool sets_max_model_len = false;  // whether the document sets serve.max_model_len
  model::DType kv_dtype{}, products{};
  std::optional<model::DType> weight_dtype;  // empty: train.dtype
  bool sliding_window_kv = false, async_scheduling = false, prefix_cache = false;
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
