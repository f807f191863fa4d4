// SPDX-License-Identifier: Apache-2.0
// A loaded model: weights on their devices, adapters and tokenizer. Use on one thread.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "core/base/event.h"
#include "core/base/json.h"
#include "core/data/tokenizer/chat.h"
#include "core/data/tokenizer/tokenizer.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/train/settings.h"

namespace mw::engine {
class Cluster;
}

namespace mw::train {

struct LoadedModel {
  LoadedModel();
  LoadedModel(LoadedModel&&) noexcept;
  LoadedModel& operator=(LoadedModel&&) noexcept;
  ~LoadedModel();
  const model::Config& config() const;

  std::unique_ptr<engine::Cluster> cluster;
  std::unique_ptr<data::Tokenizer> tokenizer;
};

// Throws for a missing or broken folder, an unsupported architecture, a tokenizer larger than the vocabulary, and an
// exceeded capacity.
LoadedModel load_model(const ModelSettings& settings, const CountProgress& progress = {});

// Loads weights for `config` from settings.path, or initialises them at random. Does not load the tokenizer.
LoadedModel load_weights(const ModelSettings& settings, const model::Config& config,
                         const CountProgress& progress = {});

// Loads only the tokenizer.
std::unique_ptr<data::Tokenizer> load_tokenizer_of(const ModelSettings& settings);

options::ChatFormat chat_format(model::Family family);

// Reads an adapter and checks it against the config.json of the model, without loading weights.
formats::PeftAdapter read_adapter(const std::filesystem::path& folder, const std::filesystem::path& model);
// LoRA options with the modules, ranks, alphas and dropout of the adapter.
options::Lora lora_options(const formats::PeftAdapter& adapter);
// LoRA options of the adapter with the dropout and the learning rates of `training`, which a file does not have.
options::Lora lora_options(const formats::PeftAdapter& adapter, const options::Lora& training);
// Adds the LoRA to a cluster for inference and copies the values.
void attach_adapter(const formats::PeftAdapter& adapter, std::uint64_t seed, engine::Cluster& cluster);
// Attaches the adapter in `folder` to a model loaded with `settings`, or replaces the model by the one in `folder`.
void load_tuned(LoadedModel& model, const std::filesystem::path& folder, ModelSettings settings);
// Copies values into a cluster with this LoRA; adapter_of reads them back for saving.
void copy_adapter(const formats::PeftAdapter& adapter, engine::Cluster& cluster);
formats::PeftAdapter adapter_of(const engine::Cluster& cluster, const options::Lora& options,
                                const std::string& base_model);

Bytes machine_memory();
// Memory per device of the mesh: settings.capacity, or an equal share of the machine's memory.
Bytes device_capacity(const ModelSettings& settings);
int thread_count(int wanted);            // 0: all cores
Json mesh_json(const mesh::Mesh& mesh);  // {"axes": [{"name", "size"}], "devices"}

// Tokens that end an answer: eos and the end-of-turn marker of `chat`.
std::vector<int> answer_stops(const data::Tokenizer& tokenizer, const data::ChatTemplate& chat);

struct Answer {
  std::string text;  // trimmed
  std::vector<int> ids;
};
// Generates until eos or the end-of-turn marker of `chat`; `prompt` is rendered text without bos. answers() decodes
// several prompts together. `on_text` is supported on one device and stops generation by returning false.
std::vector<Answer> answers(LoadedModel& model, std::span<const std::string> prompts, const data::ChatTemplate& chat,
                            const options::SampleOptions& options, std::stop_token stop = {});
Answer answer(LoadedModel& model, const std::string& prompt, const data::ChatTemplate& chat,
              const options::SampleOptions& options, std::stop_token stop = {},
              const std::function<bool(const std::string& so_far)>& on_text = {});

// Logits of the next token at each position of bos + prompt, [ids, vocab]. One device only. Throws CONTEXT if the
// prompt is too long.
struct PromptLogits {
  std::vector<int> ids;
  std::vector<float> logits;
};
PromptLogits prompt_logits(LoadedModel& model, const std::string& prompt);

}  // namespace mw::train
