// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/out_of_memory.h"

#include <algorithm>
#include <optional>

#include "core/base/event.h"
#include "core/data/dataset/dataset.h"
#include "core/experiment/settings.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/planning/predict.h"
#include "core/train/model.h"

namespace mw::jobs {
namespace {

using Edits = std::vector<std::pair<std::string, Json>>;

constexpr size_t kMostFixes = 4, kNamed = 8;
constexpr int kMostDevices = 64;
constexpr long long kSmallChunk = 64;

experiment::Experiment edited(experiment::Experiment e, const Edits& edits) {
  for (const auto& [key, value] : edits) e.set_value(key, value);
  return e;
}

// Predicts the peak memory of changed experiments. Reads the data only once.
class Pricing {
 public:
  Pricing(const experiment::Experiment& e, std::stop_token stop) : experiment_(e) {
    const train::Settings s = experiment::train_settings(experiment::bind(e));
    config_ = formats::read_config(s.model.path);
    tokenizer_ = train::load_tokenizer_of(s.model);
    dataset_ = data::load_dataset(s.data, *tokenizer_, std::move(stop));
  }
  // Empty if the changed experiment does not fit or is invalid.
  std::optional<MemoryFix> price(const Edits& edits) const try {
    const train::Settings s = experiment::train_settings(experiment::bind(edited(experiment_, edits)));
    const planning::Prediction p = planning::predict_run(s, train::data_facts(s, config_, dataset_, *tokenizer_));
    if (!p.fits()) return std::nullopt;
    return MemoryFix{edits, p.at_peak.total(), p.capacity};
  } catch (const Error&) {
    return std::nullopt;
  }

 private:
  const experiment::Experiment& experiment_;
  model::Config config_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
  data::Dataset dataset_;
};

// Returns the kinds of changes that reduce memory; each has alternatives, from smallest to largest effect.
std::vector<std::vector<Edits>> ways(const experiment::ExperimentConfig& config) {
  std::vector<std::vector<Edits>> all;
  const experiment::TrainSection& train = config.train;
  if (train.remat == model::Remat::none) all.push_back({{{"train.remat", "block"}}, {{"train.remat", "layer"}}});
  if (train.remat == model::Remat::block) all.push_back({{{"train.remat", "layer"}}});
  if (train.loss_chunk == 0 || train.loss_chunk > kSmallChunk) all.push_back({{{"train.loss_chunk", kSmallChunk}}});
  if (train.dtype == model::WeightType::f32) all.push_back({{{"train.dtype", "bf16"}}});
  std::vector<Edits> batches;  // keeps the rows per optimizer step
  for (long long batch = train.batch, times = train.accumulation; batch % 2 == 0;) {
    batch /= 2, times *= 2;
    batches.push_back({{"train.batch", batch}, {"train.accumulation", times}});
  }
  if (!batches.empty()) all.push_back(std::move(batches));
  const long long devices = config.mesh.devices();
  for (const mesh::MeshAxis& axis : config.mesh.axes) {
    std::vector<Edits> larger;
    for (long long times = 2; devices > 1 && devices * times <= kMostDevices; times *= 2)
      larger.push_back({{"mesh." + axis.name, axis.size * times}});
    if (!larger.empty()) all.push_back(std::move(larger));
  }
  return all;
}

}  // namespace

std::vector<MemoryFix> memory_fixes(const experiment::Experiment& experiment, std::stop_token stop) try {
  const Pricing pricing(experiment, std::move(stop));
  std::vector<MemoryFix> fixes;
  Edits together;
  for (const std::vector<Edits>& way : ways(experiment::bind(experiment))) {
    if (const Edits& most = way.back(); !most.front().first.starts_with("mesh."))
      together.insert(together.end(), most.begin(), most.end());
    for (const Edits& edits : way)
      if (auto fix = pricing.price(edits)) {
        fixes.push_back(std::move(*fix));
        break;
      }
  }
  if (fixes.empty())
    if (auto fix = pricing.price(together)) fixes.push_back(std::move(*fix));
  if (fixes.size() > kMostFixes) fixes.resize(kMostFixes);
  return fixes;
} catch (const Error&) {  // the report has no fixes then
  return {};
}

std::string to_text(const MemoryFix& fix) {
  std::string text;
  for (const auto& [key, value] : fix.edits)
    text += (text.empty() ? "" : " with ") + key + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  return text + " (predicted peak " + to_text(fix.peak) + " of " + to_text(fix.capacity) + ")";
}

MemoryReport report_of(const engine::OutOfMemory& failure, const experiment::Experiment& experiment,
                       std::stop_token stop) {
  const engine::OutOfMemory::State& m = failure.moment;
  Json largest = Json::array(), fixes = Json::array();
  for (size_t i = 0; i < std::min(kNamed, m.largest.size()); ++i)
    largest.push_back({{"tensor", m.largest[i].label},
                       {"category", to_string(m.largest[i].category)},
                       {"bytes", m.largest[i].bytes.value},
                       {"buffers", m.largest[i].buffers}});
  Problem problem = failure.problem();
  std::string smallest;
  for (const MemoryFix& fix : memory_fixes(experiment, std::move(stop))) {
    Json edits = Json::object();
    for (const auto& [key, value] : fix.edits) edits[key] = value;
    fixes.push_back({{"edits", std::move(edits)}, {"peak_bytes", fix.peak.value}});
    smallest += (smallest.empty() ? "set " : "; or ") + to_text(fix);
  }
  if (!smallest.empty()) problem.fix = smallest;
  return {Error(std::move(problem), failure.kind()),
          {{"out_of_memory",
            {{"device", m.device},
             {"category", to_string(m.category)},
             {"tensor", m.label},
             {"phase", m.phase},
             {"wanted_bytes", m.wanted.value},
             {"capacity_bytes", m.capacity.value},
             {"held", to_json(m.held)},
             {"largest", std::move(largest)},
             {"fixes", std::move(fixes)}}}}};
}

}  // namespace mw::jobs
