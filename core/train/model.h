// SPDX-License-Identifier: Apache-2.0
// A model ready to train or to answer: device, network and tokenizer of one HF folder. One thread.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "core/data/chat.h"
#include "core/data/tokenizer.h"
#include "core/engine/network.h"
#include "core/engine/sampler.h"
#include "core/formats/checkpoint.h"
#include "core/train/settings.h"

namespace mw::train {

struct LoadedModel {
  std::unique_ptr<engine::Device> device;
  std::unique_ptr<engine::Network> network;
  std::unique_ptr<data::Tokenizer> tokenizer;
};

using Progress = std::function<void(long done, long total)>;
// Errors: missing or broken folder, unsupported architecture, tokenizer larger than the vocabulary, capacity exceeded.
LoadedModel load_model(const ModelSettings& settings, const Progress& progress = {});

// Device and network only: a config of any source, weights from settings.path or random.
LoadedModel load_network(const ModelSettings& settings, const model::Config& config, const Progress& progress = {});

// Tokenizer only: for looking at data without the weights.
std::unique_ptr<data::Tokenizer> load_tokenizer_of(const ModelSettings& settings);

data::ChatFormat chat_of(model::Family family);

// An adapter for the model in a folder, checked against its config.json alone: before any weight is loaded.
formats::Adapter read_adapter(const std::filesystem::path& folder, const std::filesystem::path& model);
// Attaches an adapter: its modules, ranks and alphas define the LoRA; values are copied in. Dropout from `adapter`.
engine::LoraOptions lora_options(const formats::Adapter& adapter);
void copy_adapter(const formats::Adapter& adapter, engine::Network& network);
void attach_adapter(const formats::Adapter& adapter, std::uint64_t seed, engine::Network& network);
// The adapter now in the network, for saving.
formats::Adapter adapter_of(const engine::Network& network, const engine::LoraOptions& options,
                            const std::string& base_model);

Bytes machine_memory();
int thread_count(int wanted);  // 0: every core

// bos + prompt through the sampler, stop at eos or the template's end of turn. Returns the decoded answer, trimmed.
struct Answer {
  std::string text;
  std::vector<int> ids;
};
// Several prompts, decoded together.
std::vector<Answer> answers(LoadedModel& model, std::span<const std::string> prompts, data::ChatFormat chat,
                            const engine::SampleOptions& options, std::stop_token stop = {});
Answer answer(LoadedModel& model, const std::string& prompt, data::ChatFormat chat,
              const engine::SampleOptions& options, std::stop_token stop = {},
              const std::function<bool(const std::string& so_far)>& on_text = {});

}  // namespace mw::train
