// SPDX-License-Identifier: Apache-2.0
// The typed configuration of an experiment: one struct per section of the document, one member per key of the parameter
// table. Experiment::config() returns it; no other code reads keys. Plain values.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/enum_names.h"
#include "core/lint/check.h"
#include "core/plan/request/request.h"
#include "core/serve/load/router.h"
#include "core/serve/load/sizing.h"
#include "core/serve/load/sweep.h"
#include "core/serve/scheduling/scheduler.h"
#include "core/train/settings.h"

namespace mw::experiment {

enum class Kind { train, size, serve };
enum class SweepBackend { engine, model, http };
enum class Padding { max_len, longest };

// An empty optional is the choice "auto". Defaults are those of the parameter table. Paths are resolved against the
// folder of the document; an empty path is not set.
struct ModelSection {
  std::filesystem::path path, tokenizer;
  std::string id;
  train::Init init{};
  const std::filesystem::path& tokenizer_path() const { return tokenizer.empty() ? path : tokenizer; }
};
struct TargetSection {
  std::string id;
  int threads = 0;
  double memory_gib = 0;
};
struct PriceSection {
  std::string region, price_class;
  double usd_per_chip_hour = 0;
  std::string date;  // of usd_per_chip_hour: "2026-11-27", "2026-11" or "2026"; empty: not dated
};
struct BudgetSection {  // 0: no limit
  double hours = 0, usd = 0, tokens = 0;
  bool is_set() const { return hours > 0 || usd > 0 || tokens > 0; }
};
struct ShardingSection {
  std::optional<mesh::Preset> preset;
  std::vector<std::string> overrides, places;
};
struct LoraSection {
  int rank = 0;
  double alpha = 0, dropout = 0;
  bool rslora = false, dora = false;
  double plus_ratio = 1;
  std::vector<std::string> targets;
  std::vector<std::pair<std::string, int>> rank_pattern;
  std::vector<std::pair<std::string, float>> alpha_pattern;
  std::string module_path;
  std::filesystem::path adapter;
};
// `chat` and `seed` of the options depend on the model and on train.seed: see dataset_options().
struct DataSection : data::DatasetOptions {
  std::optional<data::ChatFormat> requested_chat;  // data.chat
  bool packing = false;
  std::filesystem::path lengths;
  std::string source;  // dataset of the Hugging Face hub, for recipes without data.path
  double mean_len = 0;
  std::int64_t rows = 0;
  std::optional<Padding> padding;
};
struct TrainSection : train::TrainingOptions {
  model::WeightType dtype{};
  bool sets_dtype = false;  // whether the document sets train.dtype
  model::DType save_dtype{};
  std::filesystem::path tensorboard;
  // For plans only.
  std::optional<model::Stack> stack;
  std::optional<plan::StackProfile::Attention> attention;
  std::optional<model::DType> adapter_dtype, moment_dtype;
  model::DType products{};
  std::vector<plan::SavedActivation> saved;
  plan::Offload offload{};
  std::optional<plan::StackProfile::Elementwise> compile;
  double logit_bytes = 0;  // 0: those of the software
  int other_models = 0;
};
struct StackSection {
  std::vector<std::string> versions, model_config;
  lint::AddBos add_bos{};
  lint::ChatRendering rendering{};
};
struct SizeSection {
  std::vector<serve::Workload> workloads;
  std::vector<std::string> batches;  // see size_batches()
  int prompt_len = 0, new_tokens = 0, cache_len = 0, forward_len = 0;
  int top_k = 0, chunk = 0;
  bool adapters = false;
};
struct ServeSection {
  std::optional<model::Stack> stack;
  int max_num_seqs = 0, max_model_len = 0, max_num_batched_tokens = 0;
  bool sets_max_model_len = false;  // whether the document sets serve.max_model_len
  model::DType kv_dtype{}, products{};
  std::optional<model::DType> weight_dtype;  // empty: train.dtype
  bool sliding_window_kv = false, async_scheduling = false, prefix_cache = false, chunked_prefill = false;
  plan::Sampling sampling{};
  double memory_utilisation = 0;
  int input_len = 0, output_len = 0;
  std::string target;
  double usd_per_chip_hour = 0;
  std::vector<double> hours;
  int block_size = 0;
  serve::SchedulingPolicy policy{};
  double kv_gib = 0;
  int queue = 0;
  std::vector<std::pair<std::string, std::filesystem::path>> adapters;  // name, folder
};
// `request_rate`, `input_len` and `salt` of the settings belong to a point of the sweep.
struct SweepSection : serve::LoadSettings {
  std::optional<SweepBackend> backend;
  std::string url, model;
  std::vector<std::string> request_rates, input_lens, num_prompts_at;  // see sweep_settings()
  int repeats = 0;
  serve::Slo slo;
  int replicas = 0;
  serve::Routing routing{};
};
struct MeasuredSection {
  double seconds_per_step = 0, hours = 0;
  std::vector<int> max_lens;
  std::string source;
};
enum class Commitment { one_year, three_years };
struct CostSection {  // of serving a trained model; requests_per_day 0: not asked
  double requests_per_day = 0, growth = 0, peak = 1, preemptions = 0, variation = 0;
  int months = 0;
  Commitment commitment{};
};
struct ExportSection {
  lint::MergeTool merge{};
  std::filesystem::path out;
  int rank = 0;
  double alpha = 0;
  lint::AdapterServing serve_as{};
};

struct ExperimentConfig {
  std::string name, note;
  Kind kind{};
  ModelSection model;
  TargetSection target;
  PriceSection price;
  BudgetSection budget;
  mesh::Mesh mesh;  // axes in document order; empty if the document defines none
  ShardingSection sharding;
  LoraSection lora;
  DataSection data;
  TrainSection train;
  StackSection stack;
  engine::SampleOptions sample;
  SizeSection size;
  ServeSection serve;
  SweepSection sweep;
  MeasuredSection measured;
  CostSection cost;
  ExportSection exported;
};

}  // namespace mw::experiment

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::experiment::Kind>{"train", "size", "serve"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::experiment::Commitment>{"1y", "3y"};

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::experiment::SweepBackend>{"engine", "model", "http"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::experiment::Padding>{"max_len", "longest"};
