// SPDX-License-Identifier: Apache-2.0
#include "core/port/trl_settings.h"

#include <algorithm>
#include <set>

#include "core/base/text.h"
#include "core/data/dataset/row_reader.h"
#include "core/experiment/bind.h"
#include "core/experiment/parameters.h"
#include "core/mesh/layout/size_constraints.h"
#include "core/plan/document/plan_request.h"
#include "core/port/settings_map.h"
#include "core/recipes/recipe.h"

namespace mw::port {
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
      throw Error({.id = "PORT",
                   .message = "only training has settings of TRL",
                   .place = "kind",
                   .found = std::string(to_string(config_.kind)),
                   .expected = "train"});
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
          *config_.train.attention == options::Attention::fused ? "sdpa" : "eager", "train.attention");
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

  // What the experiment sets and TRL does not have.
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
  experiment::ExperimentConfig config_;
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
