// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/bound_experiment.h"

#include <algorithm>

#include "core/experiment/hub_dataset.h"
#include "core/experiment/parameters.h"
#include "core/options/stack_options.h"

namespace mw::experiment {
namespace {

// A known dataset determines the format and the columns of its rows, and their number for plans. An invalid name is
// reported where the source is used.
void add_source_defaults(options::Data& data) {
  const auto known = known_datasets();
  const auto found = std::find_if(known.begin(), known.end(), [&](const auto& d) { return d.name == data.source; });
  if (found == known.end()) return;
  if (data.rows == 0) data.rows = found->rows;
  if (data.format == options::Format::automatic) data.format = found->format;
  data.columns.insert(found->columns.begin(), found->columns.end());
}

// A server's own defaults for settings that the document leaves out.
void add_server_defaults(const Experiment& e, options::Serving& serve) {
  if (!serve.stack) return;
  const options::ServerDefaults own = options::server_defaults(*serve.stack);
  if (!e.has("serve.block_size")) serve.block_size = own.block_size;
  if (!e.has("serve.max_num_batched_tokens")) serve.max_num_batched_tokens = own.max_num_batched_tokens;
  if (!e.has("serve.chunked_prefill")) serve.chunked_prefill = own.chunked_prefill;
  if (!e.has("serve.async_scheduling")) serve.async_scheduling = own.async_scheduling;
  if (!e.has("serve.prefix_cache")) serve.prefix_cache = own.prefix_cache;
}

}  // namespace

BoundExperiment bind(const Experiment& e) {
  BoundExperiment config;
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

std::vector<model::Role> lora_targets(const options::Lora& lora) {
  using enum model::Role;
  std::vector<model::Role> out;
  for (const model::Role role : {q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj})
    if (std::find(lora.targets.begin(), lora.targets.end(), model::hf_module_name(role)) != lora.targets.end())
      out.push_back(role);
  return out;
}

}  // namespace mw::experiment
