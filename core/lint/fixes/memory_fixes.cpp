// SPDX-License-Identifier: Apache-2.0
#include "core/lint/fixes/memory_fixes.h"

#include <algorithm>
#include <bit>

#include "core/data/dataset/example_list.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/lint/fixes/smallest_changes.h"
#include "core/plan/document/engine_request.h"
#include "core/plan/memory/engine_memory.h"
#include "core/plan/time/predict.h"
#include "core/train/model.h"
#include "core/train/run_settings.h"

namespace mw::lint {
namespace {

using Edits = std::vector<Edit>;
using Way = std::vector<Edits>;  // alternatives, from the smallest effect to the largest

constexpr size_t kMostMemoryFixes = 6;
constexpr int kMostTrials = 400, kMostDevices = 64;
constexpr int kSmallChunk = 64, kShortestRow = 64;

experiment::Experiment with_edits(experiment::Experiment e, const Edits& edits) {
  apply(e, {.edits = edits});
  return e;
}

// Predicts the peak memory of changed experiments, and the time of their steps. Reads the data once.
class FixPricing {
 public:
  FixPricing(const experiment::Experiment& e, const plan::PlanContext* context, std::stop_token stop)
      : experiment_(e), context_(context) {
    const experiment::ExperimentConfig config = e.config();
    seconds_ = seconds(e);
    config_ = formats::model_config(config.model);
    if (config.model.path.empty() || config.data.path.empty()) return;  // every row as long as it may be
    const train::Settings s = train::train_settings(config);
    tokenizer_ = train::load_tokenizer_of(s.model);
    dataset_ = data::open_dataset(s.data, *tokenizer_, stop);
  }
  // Empty if the changed experiment does not fit or is invalid.
  std::optional<MemoryFix> price(const Edits& edits) const try {
    const experiment::Experiment changed = with_edits(experiment_, edits);
    const plan::DeviceMemory memory = plan::engine_memory(request(changed.config()));
    if (!memory.fits()) return std::nullopt;
    MemoryFix fix{edits, memory.at_peak.total(), memory.capacity};
    const bool meshes = edits.back().key.starts_with("mesh.");  // virtual devices share this machine
    if (const auto changed_s = meshes ? std::nullopt : seconds(changed); changed_s && seconds_)
      fix.slowdown = *changed_s / *seconds_ - 1;
    return fix;
  } catch (const Error&) {
    return std::nullopt;
  }

 private:
  plan::Request request(const experiment::ExperimentConfig& config) const {
    const train::Settings s = tokenizer_ ? train::train_settings(config) : train::plan_settings(config, config_.family);
    plan::Request r = plan::engine_request(s, config_);
    if (tokenizer_) plan::set_rows(train::data_facts(s, config_, dataset_, *tokenizer_), {}, r);
    return r;
  }
  // Of the planner, for the ratio: the speed of this machine cancels out.
  std::optional<double> seconds(const experiment::Experiment& e) const try {
    if (!context_) return std::nullopt;
    const double s = plan::predict(plan::plan_request(e, *context_)).step.seconds.value;
    return s > 0 ? std::optional(s) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
  const experiment::Experiment& experiment_;
  const plan::PlanContext* context_;
  std::optional<double> seconds_;
  model::Config config_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
  data::TokenizedDataset dataset_;
};

// The kinds of changes on the same devices, in order of preference.
std::vector<Way> ways_to_fit(const experiment::ExperimentConfig& config) {
  std::vector<Way> all;
  const options::Training& train = config.train;
  const auto add = [&](Way way) {
    if (!way.empty()) all.push_back(std::move(way));
  };
  if (train.loss_chunk == 0 || train.loss_chunk > kSmallChunk) add({{{"train.loss_chunk", kSmallChunk}}});
  Way remats;
  if (train.remat == model::Remat::none) remats.push_back({{"train.remat", "block"}});
  if (train.remat != model::Remat::layer) remats.push_back({{"train.remat", "layer"}});
  add(std::move(remats));
  Way batches;  // keeps the rows per optimizer step
  for (long long batch = train.batch, times = train.accumulation; batch % 2 == 0;) {
    batch /= 2, times *= 2;
    batches.push_back({{"train.batch", batch}, {"train.accumulation", times}});
  }
  add(std::move(batches));
  Way lengths;  // keeps the tokens per optimizer step
  for (long long length = config.data.max_len / 2, times = 2; config.data.packing && length >= kShortestRow;
       length /= 2, times *= 2)
    lengths.push_back({{"data.max_len", length}, {"train.accumulation", train.accumulation * times}});
  add(std::move(lengths));
  if (train.dtype == model::WeightType::f32) add({{{"train.dtype", "bf16"}}});
  return all;
}

// Meshes of more virtual devices.
std::vector<Edits> larger_meshes(const mesh::Mesh& mesh) {
  std::vector<Edits> out;
  const long long devices = mesh.devices();
  for (long long times = 2; devices > 1 && devices * times <= kMostDevices; times *= 2)
    for (const mesh::MeshAxis& axis : mesh.axes) out.push_back({{"mesh." + axis.name, axis.size * times}});
  return out;
}

// Two ways may change the accumulation, each from its own value: both factors apply.
Edits both_of(Edits all, const Edits& more, long long accumulation) {
  for (const Edit& edit : more) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const Edit& e) { return e.key == edit.key; });
    if (same == all.end())
      all.push_back(edit);
    else
      same->value = same->value.get<long long>() * edit.value.get<long long>() / std::max(1LL, accumulation);
  }
  return all;
}

class FixSearch {
 public:
  FixSearch(const FixPricing& pricing, std::vector<Way> ways, long long accumulation)
      : pricing_(pricing), ways_(std::move(ways)), accumulation_(accumulation) {}
  // Tries every set of ways by its size, then in order; a set whose subset fits is left out.
  std::vector<MemoryFix> fixes(const std::stop_token& stop) {
    for (int size = 1; size <= static_cast<int>(ways_.size()); ++size)
      for (unsigned set = 1; set < 1U << ways_.size() && !stop.stop_requested(); ++set)
        if (std::popcount(set) == size &&
            std::none_of(fitting_.begin(), fitting_.end(), [&](unsigned fits) { return (fits & set) == fits; }))
          if (try_set(set, 0, {})) fitting_.push_back(set);
    return std::move(found_);
  }

 private:
  // The smallest alternative of each way first.
  bool try_set(unsigned set, size_t way, const Edits& so_far) {
    if (way == ways_.size()) {
      if (++trials_ > kMostTrials) return false;
      auto fix = pricing_.price(so_far);
      if (fix) found_.push_back(std::move(*fix));
      return fix.has_value();
    }
    if ((set >> way & 1U) == 0) return try_set(set, way + 1, so_far);
    return std::any_of(ways_[way].begin(), ways_[way].end(), [&](const Edits& edits) {
      return try_set(set, way + 1, both_of(so_far, edits, accumulation_));
    });
  }
  const FixPricing& pricing_;
  std::vector<Way> ways_;
  long long accumulation_;
  int trials_ = 0;
  std::vector<unsigned> fitting_;
  std::vector<MemoryFix> found_;
};

}  // namespace

std::vector<MemoryFix> memory_fixes(const experiment::Experiment& experiment, const plan::PlanContext* context,
                                    std::stop_token stop) try {
  const experiment::ExperimentConfig config = experiment.config();
  const FixPricing pricing(experiment, context, stop);
  std::vector<MemoryFix> fixes = FixSearch(pricing, ways_to_fit(config), config.train.accumulation).fixes(stop);
  if (fixes.size() > kMostMemoryFixes) fixes.resize(kMostMemoryFixes);
  for (const Edits& mesh : larger_meshes(config.mesh))
    if (auto fix = pricing.price(mesh)) {
      fixes.push_back(std::move(*fix));
      break;
    }
  return fixes;
} catch (const Error&) {  // nothing can be predicted
  return {};
}

std::string to_text(const MemoryFix& fix) {
  std::string text;
  for (const auto& [key, value] : fix.edits)
    text += (text.empty() ? "" : " with ") + key + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  return text + " (predicted peak " + to_text(fix.peak) + " of " + to_text(fix.capacity) +
         (fix.slowdown ? ", " + plan::slowdown_text(*fix.slowdown) : std::string()) + ")";
}

Fix fix_of(const MemoryFix& fix) {
  std::string label;
  for (const auto& [key, value] : fix.edits)
    label +=
        (label.empty() ? "Set " : ", ") + key + " to " + (value.is_string() ? value.get<std::string>() : value.dump());
  return {
      .label = std::move(label),
      .cost = (fix.slowdown ? plan::slowdown_text(*fix.slowdown) + ", " : std::string()) + "peak " + to_text(fix.peak),
      .edits = fix.edits,
      .slowdown = fix.slowdown};
}

}  // namespace mw::lint
