// SPDX-License-Identifier: Apache-2.0
// A model ready to train or to answer: the weights of one HF folder on their devices, and its tokenizer. One thread.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "core/data/tokenizer/chat.h"
#include "core/data/tokenizer/tokenizer.h"
#include "core/engine/distributed/cluster.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/train/settings.h"
#include "core/formats/peft/peft_adapter.h"

namespace mw::train {

struct LoadedModel {
  std::unique_ptr<engine::Cluster> cluster;
  std::unique_ptr<data::Tokenizer> tokenizer;
  const model::Config& config() const { return cluster->config(); }
};

using Progress = std::function<void(long done, long total)>;
// Errors: missing or broken folder, unsupported architecture, tokenizer larger than the vocabulary, capacity exceeded.
LoadedModel load_model(const ModelSettings& settings, const Progress& progress = {});

// Without the tokenizer: a config of any source, weights from settings.path or random.
LoadedModel load_weights(const ModelSettings& settings, const model::Config& config, const Progress& progress = {});

// Tokenizer only: for looking at data without the weights.
std::unique_ptr<data::Tokenizer> load_tokenizer_of(const ModelSettings& settings);

data::ChatFormat chat_of(model::Family family);

// An adapter for the model in a folder, checked against its config.json alone: before any weight is loaded.
formats::Adapter read_adapter(const std::filesystem::path& folder, const std::filesystem::path& model);
// An adapter's modules, ranks and alphas define the LoRA; dropout from `adapter`.
engine::LoraOptions lora_options(const formats::Adapter& adapter);
// Onto a cluster that only infers, whatever its mesh: adds the LoRA and copies the values in.
void attach_adapter(const formats::Adapter& adapter, std::uint64_t seed, engine::Cluster& cluster);
// Into a cluster that has that LoRA; and what it has now, for saving.
void copy_adapter(const formats::Adapter& adapter, engine::Cluster& cluster);
formats::Adapter adapter_of(const engine::Cluster& cluster, const engine::LoraOptions& options,
                            const std::string& base_model);

Bytes machine_memory();
// What each device of the settings' mesh may hold: as given, or an equal share of the machine's memory.
Bytes device_capacity(const ModelSettings& settings);
int thread_count(int wanted);            // 0: every core
Json mesh_json(const mesh::Mesh& mesh);  // {"axes": [{"name", "size"}], "devices"}

// bos + prompt through the sampler, stop at eos or the template's end of turn. Returns the decoded answer, trimmed.
struct Answer {
  std::string text;
  std::vector<int> ids;
};
// Several prompts, decoded together. on_text: of one device only.
std::vector<Answer> answers(LoadedModel& model, std::span<const std::string> prompts, data::ChatFormat chat,
                            const engine::SampleOptions& options, std::stop_token stop = {});
Answer answer(LoadedModel& model, const std::string& prompt, data::ChatFormat chat,
              const engine::SampleOptions& options, std::stop_token stop = {},
              const std::function<bool(const std::string& so_far)>& on_text = {});

// The same bos + prompt through the model once: logits of the next token at each position, [ids, vocab]. One device;
// throws Error CONTEXT.
struct PromptLogits {
  std::vector<int> ids;
  std::vector<float> logits;
};
PromptLogits prompt_logits(LoadedModel& model, const std::string& prompt);

}  // namespace mw::train
