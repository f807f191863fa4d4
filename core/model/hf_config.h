// SPDX-License-Identifier: Apache-2.0
// Reads and writes config.json of Hugging Face transformers. Thread-safe.
#pragma once
#include <string>
#include <string_view>

#include "core/base/json.h"
#include "core/model/config.h"

namespace mw::model {

// Sets `hf_model_type` and what belongs to it: architecture, family and tensor prefix. The type must be a known one.
void set_model_type(Config& config, std::string_view model_type);
// Reads a text-only config, or the text_config of a multimodal one, with the keys of all transformers versions. Throws
// CONFIG naming `file` and the key.
Config from_hf_config(const Json& json, const std::string& file);
// Returns the config without vision and audio towers: text model type, ForCausalLM class, prefix "model.".
Config text_only(Config config);
// The config.json of text_only(config), which from_hf_config and transformers 4.57 and 5 load. Throws CONFIG if the
// format cannot express the layers, or if is_planning_only(config).
Json to_hf_config(const Config& config);

}  // namespace mw::model
