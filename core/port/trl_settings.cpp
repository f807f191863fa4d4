// SPDX-License-Identifier: Apache-2.0
#include "core/port/trl_settings.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/data/dataset/row_reader.h"
#include "core/experiment/bound_experiment.h"
#include "core/experiment/parameters.h"
#include "core/mesh/layout/size_constraints.h"
#include "core/model/catalogue.h"
#include "core/plan/document/plan_request.h"
#include "core/recipes/recipe.h"

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

namespace {

std::string python_literal(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_null()) return "None";
  if (value.is_array()) return "[" + joined(value, ", ", [](const Json& item) { return python_literal(item); }) + "]";
  if (value.is_object()) {
    std::string out;
    for (const auto& [key, inner] : value.items())
      out += (out.empty() ? "" : ", ") + Json(key).dump() + ": " + python_literal(inner);
    return "{" + out + "}";
  }
  return value.dump();  // numbers, and text with the escapes that JSON and Python share
}

class TrlWriter {
 public:
  TrlWriter(const experiment::Experiment& experiment, const plan::PlanContext& context)
      : experiment_(experiment), config_(experiment.config()) {
    mesh_ = plan::planned_mesh(experiment, context);
    lora_ = config_.train.method == model::TrainMethod::lora;
  }

  TrlSettings write() {
    if (config_.kind != experiment::Kind::train)
      throw Error("PORT", "only training has settings of TRL",
                  {.place = "kind", .found = std::string(to_string(config_.kind)), .expected = "train"});
    add_model();
    add_training();
    if (lora_) add_lora();
    add_accelerate();
    list_others();
    out_.script = script();
    out_.accelerate = yaml();
    return std::move(out_);
  }

 private:
  void add(const std::string& call, const std::string& name, Json value, const std::string& key) {
    done_.insert(key);
    out_.settings.push_back({call, name, std::move(value), key});
  }
  Json value(const std::string& key) const { return experiment_.value(key); }

  void add_model() {
    const std::string hub = recipes::hub_name(config_.model.id);
    const std::string name =
        hub.empty() ? (config_.model.path.empty() ? config_.model.id : config_.model.path.string()) : hub;
    add("from_pretrained", "pretrained_model_name_or_path", name, config_.model.id.empty() ? "model.path" : "model.id");
    add("from_pretrained", "dtype", config_.train.dtype == model::WeightType::f32 ? "float32" : "bfloat16",
        "train.dtype");
    if (config_.train.attention)
      add("from_pretrained", "attn_implementation",
          *config_.train.attention == options::AttentionKernel::fused ? "sdpa" : "eager", "train.attention");
  }

  void add_training() {
    const bool epochs = config_.train.epochs > 0;
    for (const PlainSetting& row : plain_settings()) {
      const std::string key(row.key);
      if (row.call != "SFTConfig" || (key == "train.epochs" && !epochs)) continue;
      const bool text = key == "name" || key == "data.columns.text";
      if (text && value(key).get<std::string>().empty()) continue;
      add("SFTConfig", std::string(row.name), value(key), key);
    }
    if (!epochs) add("SFTConfig", "max_steps", value("train.steps"), "train.steps");
    const int devices = std::max(1, mesh::batch_devices(mesh_));
    add("SFTConfig", "per_device_train_batch_size", std::max(1, config_.train.batch / devices), "train.batch");
    add("SFTConfig", "warmup_steps", value("train.warmup_steps"), "train.warmup_steps");
    const double floor = value("train.final_ratio").get<double>();
    const bool min_lr = floor > 0 && value("train.schedule") == "cosine";
    add("SFTConfig", "lr_scheduler_type", min_lr ? Json("cosine_with_min_lr") : value("train.schedule"),
        "train.schedule");
    if (min_lr) add("SFTConfig", "lr_scheduler_kwargs", {{"min_lr_rate", floor}}, "train.final_ratio");
    add("SFTConfig", "gradient_checkpointing", value("train.remat") != "none", "train.remat");
    // The Trainer takes the labels away from the model to smooth them, which TRL's loss in chunks needs.
    const bool chunks = config_.train.loss_chunk > 0 && config_.train.label_smoothing == 0;
    add("SFTConfig", "loss_type", chunks ? "chunked_nll" : "nll", "train.loss_chunk");
    const std::string loss = value("data.loss").get<std::string>();
    if (loss == "assistant")
      add("SFTConfig", "assistant_only_loss", true, "data.loss");
    else
      add("SFTConfig", "completion_only_loss", loss == "completion", "data.loss");
  }

  void add_lora() {
    for (const PlainSetting& row : plain_settings())
      if (row.call == "LoraConfig" && !(value(std::string(row.key)).is_object() && value(std::string(row.key)).empty()))
        add("LoraConfig", std::string(row.name), value(std::string(row.key)), std::string(row.key));
    add("LoraConfig", "target_modules", value("lora.targets"), "lora.targets");
    out_.settings.push_back({"LoraConfig", "task_type", "CAUSAL_LM", "train.method"});
    done_.insert("train.method");
  }

  void add_accelerate() {
    const int devices = std::max(1, mesh_.devices()), data = mesh_.size("data"), fsdp = mesh_.size("fsdp");
    const bool replicated = data == devices && devices > 1;
    done_.insert("mesh.fsdp");
    done_.insert("mesh.data");
    done_.insert("train.stack");
    done_.insert("target.id");
    add("accelerate", "distributed_type", devices == 1 ? "NO" : replicated ? "MULTI_GPU" : "FSDP", "mesh");
    add("accelerate", "num_processes", devices, "mesh");
    add("accelerate", "mixed_precision", config_.train.dtype == model::WeightType::f32 ? "no" : "bf16", "train.dtype");
    if (data > 1 && fsdp > 1) {
      add("accelerate", "parallelism_config_dp_replicate_size", data, "mesh.data");
      add("accelerate", "parallelism_config_dp_shard_size", fsdp, "mesh.fsdp");
    }
    if (const int tp = mesh_.size("tp"); tp > 1)
      out_.without_counterpart.push_back({"mesh.tp", tp, "FSDP2 has one axis: all devices split the weights"});
    done_.insert("mesh.tp");
  }

  // Lists the settings of the experiment that TRL does not have.
  void list_others() {
    for (const experiment::Parameter& p : experiment::parameters()) {
      if (p.key.ends_with(".*") || done_.contains(p.key) || !experiment_.has(p.key)) continue;
      if (!lora_ && p.key.starts_with("lora.")) continue;
      out_.without_counterpart.push_back({p.key, value(p.key), reason(p.key)});
    }
  }
  static std::string reason(const std::string& key) {
    if (key == "data.path" || key == "data.eval_path" || key == "data.format" || key.starts_with("data.columns"))
      return "TRL reads datasets: load the file with load_dataset(\"json\", data_files=...)";
    if (key == "lora.plus_ratio")
      return "PEFT makes the optimizer: create_loraplus_optimizer(..., loraplus_lr_ratio=...)";
    if (key == "lora.module_path") return "the names of lora.targets are those of PEFT";
    if (key.starts_with("data.")) return "TRL has no such setting";
    if (key == "train.keep_best") return "set load_best_model_at_end and metric_for_best_model with eval_strategy";
    if (key == "train.patience") return "TRL stops early with the EarlyStoppingCallback of transformers";
    if (key.starts_with("train.sample") || key == "train.answers") return "TRL does not sample while it trains";
    if (key.starts_with("serve.") || key.starts_with("sweep.") || key.starts_with("size.") ||
        key.starts_with("sample."))
      return "not a setting of training";
    return "for plans and the local engine only";
  }

  std::string arguments(const std::string& call, const std::string& indent) const {
    std::string out;
    for (const TrlSetting& s : out_.settings)
      if (s.call == call) out += indent + s.name + "=" + python_literal(s.value) + ",\n";
    return out;
  }
  std::string script() const {
    std::string out =
        "# Settings of TRL and PEFT for this experiment, written by Meshwright.\nfrom datasets import load_dataset\n";
    if (lora_) out += "from peft import LoraConfig\n";
    out += "from transformers import AutoModelForCausalLM\nfrom trl import SFTConfig, SFTTrainer\n\n";
    out += "model = AutoModelForCausalLM.from_pretrained(\n" + arguments("from_pretrained", "    ") + ")\n";
    if (lora_) out += "peft_config = LoraConfig(\n" + arguments("LoraConfig", "    ") + ")\n";
    out += "training_args = SFTConfig(\n" + arguments("SFTConfig", "    ") + ")\n";
    out += std::string("train_dataset = load_dataset(") + (data::is_table(config_.data.path) ? "\"csv\"" : "\"json\"") +
           ", data_files=" + Json(config_.data.path.empty() ? "train.jsonl" : config_.data.path.string()).dump() +
           (data::data_extension(config_.data.path) == ".tsv" ? ", sep=\"\\t\"" : "") + ", split=\"train\")\n";
    out += "trainer = SFTTrainer(model=model, args=training_args, train_dataset=train_dataset" +
           std::string(lora_ ? ", peft_config=peft_config" : "") + ")\ntrainer.train()\n";
    return out;
  }
  std::string yaml() const {
    std::string out = "# Configuration of Accelerate for this experiment, written by Meshwright.\n", axes;
    bool sharded = false;
    for (const TrlSetting& s : out_.settings) {
      if (s.call != "accelerate") continue;
      sharded = sharded || s.value == "FSDP";
      if (s.name.starts_with("parallelism_config_"))
        axes += "  " + s.name + ": " + s.value.dump() + "\n";
      else
        out += s.name + ": " +
               (s.value == "no" || s.value == "NO" ? "'" + s.value.get<std::string>() + "'"
                : s.value.is_string()              ? s.value.get<std::string>()
                                                   : s.value.dump()) +
               "\n";
    }
    if (sharded)
      out +=
          "fsdp_config:\n  fsdp_version: 2\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
          "  fsdp_reshard_after_forward: true\n";
    return axes.empty() ? out : out + "parallelism_config:\n" + axes;
  }

  const experiment::Experiment& experiment_;
  experiment::BoundExperiment config_;
  mesh::Mesh mesh_;
  bool lora_ = false;
  std::set<std::string> done_;
  TrlSettings out_;
};

}  // namespace

TrlSettings trl_settings(const experiment::Experiment& experiment, const plan::PlanContext& context) {
  return TrlWriter(experiment, context).write();
}

}  // namespace mw::port
