// SPDX-License-Identifier: GPL-3.0-or-later
// Settings of any kind as an experiment.
#include <cstdlib>

#include "core/port/recipe.h"
#include "tests/readers/reader.h"
#include "tests/shipped.h"

namespace mw::readers {
namespace {

// A script, a zero byte, and YAML.
void ported_recipe(std::string_view bytes) {
  const size_t zero = bytes.find('\0');
  std::vector<formats::ConfigSetting> settings = formats::read_python_settings(bytes.substr(0, zero), "train.py");
  if (zero != std::string_view::npos)
    for (formats::ConfigSetting& s : formats::read_yaml_settings(bytes.substr(zero + 1), "a.yaml"))
      settings.push_back(std::move(s));
  const port::PortedRecipe recipe = port::recipe_of(settings, {}, test::context());
  for (const Problem& problem : recipe.experiment.validate())
    if (problem.severity == Severity::error) std::abort();  // every ported experiment is valid
}
std::vector<std::string> ported_recipe_seeds() {
  using namespace std::string_literals;
  return {
      "SFTConfig(per_device_train_batch_size=2, max_steps=9, warmup_ratio=0.1, num_train_epochs=1, packing=True, "
      "bf16=True, use_liger_kernel=True, lr_scheduler_type='cosine')\nLoraConfig(r=8, target_modules='all-linear')\n\0"
      "num_processes: 8\ndistributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD\n"
      "num_machines: 2\n"s,
      "m = A.from_pretrained('google/gemma-3-1b-it', dtype=torch.float32, attn_implementation='sdpa')\n"
      "TrainingArguments(gradient_checkpointing=False, loss_type='nll', warmup_steps=5)\n\0"
      "parallelism_config:\n  parallelism_config_dp_shard_size: 4\n  parallelism_config_tp_size: 2\n"s};
}

}  // namespace

Reader ported_recipe_reader() {
  return {"ported_recipe", ported_recipe, ported_recipe_seeds, 3072, 600};
}

std::vector<Reader> port_readers() {
  return {ported_recipe_reader()};
}

}  // namespace mw::readers
