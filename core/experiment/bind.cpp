// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/bind.h"

#include <algorithm>
#include <charconv>

#include "core/data/dataset/hub_dataset.h"
#include "core/experiment/parameters.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/model/catalogue.h"

namespace mw::experiment {
namespace {

Error wrong(const char* id, std::string key, std::string found, std::string expected) {
  return Error({.id = id,
                .message = "invalid entry",
                .place = std::move(key),
                .found = std::move(found),
                .expected = std::move(expected)});
}

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == std::string_view::npos ? "" : std::string(text.substr(begin, end - begin + 1));
}

// Splits "name = value" at the last '='.
std::pair<std::string, std::string> assignment(const std::string& text, const char* key, const char* example) {
  const auto equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) throw wrong("SET", key, text, example);
  return {trimmed(std::string_view(text).substr(0, equals)), trimmed(std::string_view(text).substr(equals + 1))};
}

// A known dataset determines the format and the columns of its rows, and their number for plans. An invalid name is
// reported where the source is used.
void add_source_defaults(DataSection& data) {
  const auto known = data::known_datasets();
  const auto found = std::find_if(known.begin(), known.end(), [&](const auto& d) { return d.name == data.source; });
  if (found == known.end()) return;
  if (data.rows == 0) data.rows = found->rows;
  if (data.format == data::Format::automatic) data.format = found->format;
  data.columns.insert(found->columns.begin(), found->columns.end());
}

// A server's own defaults for settings that the document leaves out.
void add_server_defaults(const Experiment& e, ServeSection& serve) {
  if (!serve.stack) return;
  const plan::StackProfile::ServerDefaults own = plan::stack_profile(*serve.stack, {}).server;
  if (!e.has("serve.block_size")) serve.block_size = own.block_size;
  if (!e.has("serve.max_num_batched_tokens")) serve.max_num_batched_tokens = own.max_num_batched_tokens;
  if (!e.has("serve.chunked_prefill")) serve.chunked_prefill = own.chunked_prefill;
  if (!e.has("serve.async_scheduling")) serve.async_scheduling = own.async_scheduling;
  if (!e.has("serve.prefix_cache")) serve.prefix_cache = own.prefix_cache;
}

}  // namespace

ExperimentConfig bind(const Experiment& e) {
  ExperimentConfig config;
  for (const Parameter& p : parameters()) {
    if (p.key.ends_with(".*")) {
      const Json* section = e.find(p.key.substr(0, p.key.size() - 2));
      Json axes = Json::object();
      if (section && section->is_object())
        for (const auto& [axis, size] : section->items())
          if (const std::string key = "mesh." + axis; find_parameter(key) == &p && !check_value(p, key, size))
            axes[axis] = size;
      p.store(config, axes, e.folder());
      continue;
    }
    const Json* value = e.find(p.key);
    p.store(config, value && !check_value(p, p.key, *value) ? *value : p.fallback, e.folder());
  }
  std::erase_if(config.data.columns, [](const auto& column) { return column.second.empty(); });
  add_source_defaults(config.data);
  config.train.sets_dtype = e.has("train.dtype");
  add_server_defaults(e, config.serve);
  config.serve.sets_max_model_len = e.has("serve.max_model_len");
  return config;
}

mesh::ShardingRules sharding_rules(const ShardingSection& sharding, mesh::Preset default_preset) {
  mesh::ShardingRules rules{.preset = sharding.preset.value_or(default_preset)};
  for (const std::string& text : sharding.overrides) {
    auto [pattern, spec] = assignment(text, "sharding.overrides", "q_einsum = (tp, fsdp, -)");
    rules.overrides.push_back({pattern, mesh::parse_spec(spec)});
  }
  return rules;
}

std::vector<mesh::RequestedPlacement> axis_places(const ShardingSection& sharding) {
  std::vector<mesh::RequestedPlacement> places;
  for (const std::string& text : sharding.places) {
    auto [axis, dimensions] = assignment(text, "sharding.places", "tp = 0, 1");
    mesh::RequestedPlacement place{axis, {}};
    for (size_t at = 0; at < dimensions.size();) {
      const size_t comma = std::min(dimensions.find(',', at), dimensions.size());
      const std::string one = trimmed(std::string_view(dimensions).substr(at, comma - at));
      int d = 0;
      if (std::from_chars(one.data(), one.data() + one.size(), d).ec != std::errc{})
        throw wrong("SET", "sharding.places", text, "tp = 0, 1");
      place.dimensions.push_back(d);
      at = comma + 1;
    }
    places.push_back(std::move(place));
  }
  return places;
}

model::Config model_config(const ModelSection& model) {
  if (!model.path.empty()) return formats::read_config(model.path);
  if (model.id.empty())
    throw Error({.id = "MISSING",
                 .message = "the experiment has no model",
                 .place = "model.id",
                 .expected = "a catalogue id or a folder",
                 .fix = "set model.id, e.g. --set model.id=gemma3-1b, or model.path"});
  return model::catalogue_config(model.id);
}

}  // namespace mw::experiment
