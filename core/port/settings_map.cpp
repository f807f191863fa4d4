// SPDX-License-Identifier: Apache-2.0
#include "core/port/settings_map.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "core/experiment/parameters.h"
#include "core/model/catalogue.h"

namespace mw::port {
namespace {

// Spellings of older versions and of TRL's ModelConfig.
constexpr std::pair<std::string_view, std::string_view> kAliases[]{
    {"max_seq_length", "max_length"}, {"lora_r", "r"}, {"gradient_clipping", "max_grad_norm"}};

struct Reason {
  std::string_view beginning, text;
};
// The first row whose beginning the name has.
constexpr Reason kReasons[]{
    {"output_dir", "runs are kept in the run store (--runs-dir)"},
    {"logging_", "the engine records every step"},
    {"report_to", "runs are recorded in the run store; `import` reads logs of other programs"},
    {"project", "runs are recorded in the run store; `import` reads logs of other programs"},
    {"push_to_hub", "nothing is uploaded"},
    {"hub_", "nothing is uploaded"},
    {"dataset_num_proc", "the number of processes that prepare rows does not change them"},
    {"dataloader_", "the loader prefetches in threads of its own"},
    {"dataset_name", "rows are read from a local file: export them as JSONL and set data.path"},
    {"dataset_", "rows are read from a local file: export them as JSONL and set data.path"},
    {"fsdp_auto_wrap_policy", "every decoder layer is gathered on its own"},
    {"fsdp_transformer_layer_cls", "every decoder layer is gathered on its own"},
    {"fsdp_state_dict_type", "checkpoints hold whole tensors"},
    {"fsdp_cpu_ram_efficient_loading", "weights are read shard by shard"},
    {"fsdp_sync_module_states", "weights are read shard by shard"},
    {"fsdp_version", "FSDP1 and FSDP2 are planned alike"},
    {"fsdp_reshard_after_forward", "plans gather weights again for the backward pass"},
    {"fsdp_offload_params", "plans keep weights on the devices"},
    {"fsdp_", "a detail of FSDP that plans do not have"},
    {"offload_", "plans keep weights and optimizer on the devices"},
    {"deepspeed", "DeepSpeed's own files are read if they are passed, too"},
    {"zero3_", "a detail of DeepSpeed that plans do not have"},
    {"load_in_", "quantized base weights are not trained: QLoRA has no counterpart"},
    {"bnb_", "quantized base weights are not trained: QLoRA has no counterpart"},
    {"bias", "adapters have no biases"},
    {"modules_to_save", "only adapters are trained beside frozen weights"},
    {"init_lora_weights", "B starts from zero, A from random numbers"},
    {"task_type", "always a causal language model"},
    {"peft_type", "adapters are LoRA"},
    {"inference_mode", "training always starts with trainable adapters"},
    {"optim", "AdamW in f32"},
    {"neftune_noise_alpha", "no noise is added to embeddings"},
    {"group_by_length", "rows are shuffled by seed"},
    {"attn_implementation", "this attention has no counterpart in plans"},
    {"lr_scheduler_kwargs", "only min_lr_rate has a counterpart (train.final_ratio)"},
    {"remove_unused_columns", "columns that are not named are not read"},
    {"eval_strategy", "train.eval_every decides"},
    {"evaluation_strategy", "train.eval_every decides"},
    {"per_device_eval_batch_size", "evaluation uses train.batch"},
    {"save_strategy", "train.checkpoint_every decides"},
    {"load_best_model_at_end", "train.keep_best decides"},
    {"metric_for_best_model", "train.keep_best decides"},
    {"greater_is_better", "train.keep_best decides"},
    {"early_stopping_", "train.patience decides"},
    {"truncation_mode", "rows are cut at their end"},
    {"split", "rows are read from a local file: data.eval_fraction holds some out"},
    {"trust_remote_code", "no code of a model is executed"},
    {"compute_environment", "how processes are started does not change the training"},
    {"rdzv_backend", "how processes are started does not change the training"},
    {"main_", "how processes are started does not change the training"},
    {"machine_rank", "how processes are started does not change the training"},
    {"same_network", "how processes are started does not change the training"},
    {"enable_cpu_affinity", "how processes are started does not change the training"},
    {"tpu_", "how processes are started does not change the training"},
    {"debug", "how processes are started does not change the training"},
    {"downcast_bf16", "weights have the type of train.dtype"},
    {"use_cpu", "the target decides (target.id)"},
};

std::string normalised(std::string_view name) {
  std::string text = lower_case(name.substr(name.rfind('/') + 1));
  for (const std::string_view prefix : {"meta-"})
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
  for (const std::string_view suffix : {"-it", "-pt", "-instruct", "-hf", "-chat"})
    if (text.ends_with(suffix)) text.erase(text.size() - suffix.size());
  std::erase(text, '-');
  return text;
}

}  // namespace

std::span<const PlainSetting> plain_settings() {
  static const std::vector<PlainSetting> kPlain = [] {
    std::vector<PlainSetting> rows;
    for (const experiment::Parameter& p : experiment::parameters())
      if (const std::string_view name = p.columns.names.trl; !name.empty())
        rows.push_back({p.key.starts_with("lora.") ? "LoraConfig" : "SFTConfig", name, p.key});
    return rows;
  }();
  return kPlain;
}

const PlainSetting* find_plain_setting(std::string_view name) {
  for (const auto& [alias, usual] : kAliases)
    if (name == alias) name = usual;
  const auto rows = plain_settings();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

std::string missing_reason(std::string_view section, std::string_view name) {
  if (section.starts_with("load_")) name = "dataset_name";
  if (section.starts_with("AutoTokenizer") || section.starts_with("AutoProcessor"))
    return "the tokenizer of the model folder is used (model.tokenizer)";
  const auto* row = std::find_if(std::begin(kReasons), std::end(kReasons),
                                 [&](const Reason& r) { return name.starts_with(r.beginning); });
  return row == std::end(kReasons) ? "the experiment has no such setting" : std::string(row->text);
}

std::string catalogue_model(std::string_view hub_name) {
  const std::string wanted = normalised(hub_name);
  for (const std::string& id : model::catalogue_ids())
    if (normalised(id) == wanted) return id;
  return {};
}

}  // namespace mw::port
