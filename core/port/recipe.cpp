// SPDX-License-Identifier: Apache-2.0
#include "core/port/recipe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "core/base/counted.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/experiment/parameters.h"
#include "core/port/trl_settings.h"

namespace mw::port {
namespace {

using formats::ConfigSetting;
constexpr const char* kTrlDefault = "TRL's default (SFTConfig of TRL 1.10)";
constexpr const char* kTrainerDefault = "the default of transformers' TrainingArguments";
constexpr const char* kPeftDefault = "PEFT's default (LoraConfig)";
constexpr const char* kMixed = "the recipe computes in bf16; the experiment also holds the weights in bf16";
constexpr int kChunk = 256;  // rows of logits at once where a library computes the loss in parts of its own size

bool is_list_of_text(const Json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& v) { return v.is_string(); });
}

// Where settings of supervised fine-tuning stand; others, such as DPOConfig, are not mapped.
bool is_known_section(std::string_view section) {
  constexpr std::array<std::string_view, 15> kSections{"",
                                                       "SFTConfig",
                                                       "TrainingArguments",
                                                       "Seq2SeqTrainingArguments",
                                                       "LoraConfig",
                                                       "ModelConfig",
                                                       "ScriptArguments",
                                                       "get_peft_model",
                                                       "SFTTrainer",
                                                       "Trainer",
                                                       "fsdp_config",
                                                       "deepspeed_config",
                                                       "parallelism_config",
                                                       "zero_optimization",
                                                       "FullyShardedDataParallelPlugin"};
  return std::find(kSections.begin(), kSections.end(), section) != kSections.end() ||
         section.ends_with("from_pretrained");
}

class Mapper {
 public:
  Mapper(const std::string& gpu, const plan::PlanContext& context) : gpu_(gpu), context_(context) {}

  PortedRecipe map(const std::vector<ConfigSetting>& settings) {
    for (const ConfigSetting& s : settings) find_libraries(s);
    for (const ConfigSetting& s : settings) {
      if (s.value)
        take(s);
      else
        out_.not_read.push_back(s);
    }
    take_batch();
    take_steps();
    take_mesh();
    take_checkpointing();
    assume_defaults();
    if (out_.mapped.empty())
      throw Error("PORT", "no setting of a TRL or PEFT recipe was found",
                  {.place = "",
                   .found = counted(settings.size(), "setting"),
                   .expected = "arguments of SFTConfig, TrainingArguments or LoraConfig, adapter_config.json, or a "
                               "configuration of Accelerate",
                   .fix = "pass the script or the configuration that sets them"});
    take_target();
    return std::move(out_);
  }

 private:
  void find_libraries(const ConfigSetting& s) {
    constexpr std::array<std::string_view, 5> kOfTrl{"max_length", "max_seq_length", "packing", "completion_only_loss",
                                                     "assistant_only_loss"};
    const bool file_of_trl = s.section.empty() && std::find(kOfTrl.begin(), kOfTrl.end(), s.name) != kOfTrl.end();
    trl_ = trl_ || s.section == "SFTConfig" || s.section == "SFTTrainer" || file_of_trl;
    trainer_ = trainer_ || trl_ || s.section == "TrainingArguments" || s.name == "per_device_train_batch_size";
    out_.adapters = out_.adapters || s.section == "LoraConfig" || s.section == "get_peft_model" ||
                    s.name == "peft_type" || (s.name == "use_peft" && s.value && *s.value == true);
  }

  // -- one setting ----------------------------------------------------------------------------------------------

  void take(const ConfigSetting& s) {
    if (!is_known_section(s.section)) {
      const bool quantized = s.section == "BitsAndBytesConfig";
      if (s.section == "load_dataset")
        return miss(s, "set data.path, or data.source to OWNER/NAME@REVISION with the revision that was trained on");
      return miss(s, quantized ? missing_reason("", "bnb_")
                               : s.section + " does not belong to supervised fine-tuning with TRL and PEFT");
    }
    if (s.value->is_null()) return miss(s, "None leaves it to the library");
    if (const auto handler = handlers().find(s.name); handler != handlers().end()) return (this->*handler->second)(s);
    if (s.name == "#1" && s.section.ends_with("from_pretrained")) return take_model(s);
    if (const PlainSetting* row = find_plain_setting(s.name)) {
      if (row->key == "train.epochs" && !is_positive(s)) return miss(s, "0 epochs: max_steps decides");
      return set(s, std::string(row->key), *s.value);
    }
    miss(s, missing_reason(s.section, s.name));
  }

  using Handler = void (Mapper::*)(const ConfigSetting&);
  static const std::map<std::string_view, Handler>& handlers() {
    static const std::map<std::string_view, Handler> kHandlers{
        {"model", &Mapper::take_model},
        {"model_name_or_path", &Mapper::take_model},
        {"base_model_name_or_path", &Mapper::take_model},
        {"pretrained_model_name_or_path", &Mapper::take_model},
        {"dtype", &Mapper::take_dtype},
        {"torch_dtype", &Mapper::take_dtype},
        {"bf16", &Mapper::take_bf16},
        {"mixed_precision", &Mapper::take_mixed_precision},
        {"attn_implementation", &Mapper::take_attention},
        {"lr_scheduler_type", &Mapper::take_schedule},
        {"lr_scheduler_kwargs", &Mapper::take_schedule_options},
        {"warmup_ratio", &Mapper::keep_warmup},
        {"warmup_steps", &Mapper::keep_warmup},
        {"max_steps", &Mapper::keep_steps},
        {"per_device_train_batch_size", &Mapper::keep_batch},
        {"target_modules", &Mapper::take_targets},
        {"lora_target_modules", &Mapper::take_targets},
        {"use_liger_kernel", &Mapper::take_liger},
        {"loss_type", &Mapper::take_loss_type},
        {"gradient_checkpointing", &Mapper::keep_checkpointing},
        {"fsdp_activation_checkpointing", &Mapper::keep_checkpointing},
        {"activation_checkpointing", &Mapper::keep_checkpointing},
        {"assistant_only_loss", &Mapper::take_assistant_loss},
        {"completion_only_loss", &Mapper::take_completion_loss},
        {"num_processes", &Mapper::keep_processes},
        {"num_machines", &Mapper::keep_machines},
        {"distributed_type", &Mapper::keep_distribution},
        {"zero_stage", &Mapper::keep_zero_stage},
        {"stage", &Mapper::keep_zero_stage},
        {"fsdp_sharding_strategy", &Mapper::keep_sharding},
        {"parallelism_config_dp_replicate_size", &Mapper::take_axis},
        {"parallelism_config_dp_shard_size", &Mapper::take_axis},
        {"parallelism_config_tp_size", &Mapper::take_axis},
    };
    return kHandlers;
  }

  void miss(const ConfigSetting& s, std::string reason) { out_.without_counterpart.push_back({s, std::move(reason)}); }

  bool is_set(const std::string& key) const { return out_.experiment.has(key); }

  // A value outside the range of the key has no counterpart.
  void set(const ConfigSetting& s, const std::string& key, Json value, const std::string& note = {}) {
    const experiment::Parameter* parameter = experiment::find_parameter(key);
    if (parameter->type == experiment::ParamType::integer && value.is_number_float() &&
        std::abs(value.get<double>()) < 1e15 && value.get<double>() == std::floor(value.get<double>()))
      value = static_cast<std::int64_t>(value.get<double>());
    if (const auto problem = experiment::check_value(*parameter, key, value))
      return miss(s, key + " does not take this value; it takes " + experiment::range_text(*parameter));
    for (MappedSetting& earlier : out_.mapped)
      if (earlier.key == key && earlier.value != value) earlier.note = "replaced by " + to_text(s.place);
    out_.experiment.set_value(key, value);
    out_.mapped.push_back({s, key, std::move(value), note});
  }

  void assume(const std::string& key, Json value, const std::string& reason) {
    if (is_set(key) || experiment::check_value(*experiment::find_parameter(key), key, value)) return;
    out_.experiment.set_value(key, value);
    out_.assumed.push_back({key, std::move(value), reason});
  }

  static bool is_positive(const ConfigSetting& s) { return s.value->is_number() && s.value->get<double>() > 0; }

  void take_model(const ConfigSetting& s) {
    if (s.section.starts_with("AutoTokenizer") || s.section.starts_with("AutoProcessor") || !s.value->is_string())
      return miss(s, missing_reason(s.section, s.name));
    const auto name = s.value->get<std::string>();
    if (const std::string id = catalogue_model(name); !id.empty()) return set(s, "model.id", id);
    const std::filesystem::path folder = std::filesystem::path(s.place.file).parent_path() / name;
    if (path_exists(folder / "config.json"))
      return set(s, "model.path", std::filesystem::absolute(folder).lexically_normal().string());
    miss(s, "the catalogue has no such model: set model.path to its folder");
  }

  void take_dtype(const ConfigSetting& s) {
    const std::string name = s.value->is_string() ? s.value->get<std::string>() : "";
    if (name == "bfloat16" || name == "torch.bfloat16") return set(s, "train.dtype", "bf16");
    if (name == "float32" || name == "torch.float32") return set(s, "train.dtype", "f32");
    miss(s, "weights are bf16 or f32");
  }
  void take_bf16(const ConfigSetting& s) {
    if (*s.value != true) return miss(s, "the type of the weights decides (train.dtype)");
    set(s, "train.dtype", "bf16", kMixed);
  }
  void take_mixed_precision(const ConfigSetting& s) {
    if (*s.value == "bf16") return set(s, "train.dtype", "bf16", kMixed);
    miss(s, "weights are bf16 or f32");
  }
  void take_attention(const ConfigSetting& s) {
    if (*s.value == "eager") return set(s, "train.attention", "materialised");
    const bool fused =
        s.value->is_string() && (*s.value == "sdpa" || s.value->get<std::string>().find("flash") != std::string::npos);
    if (fused) return set(s, "train.attention", "fused");
    miss(s, missing_reason(s.section, s.name));
  }
  void take_schedule(const ConfigSetting& s) {
    const std::string name = s.value->is_string() ? s.value->get<std::string>() : "";
    if (name == "cosine" || name == "linear" || name == "constant") return set(s, "train.schedule", name);
    if (name == "constant_with_warmup") return set(s, "train.schedule", "constant");
    if (name == "cosine_with_min_lr") return set(s, "train.schedule", "cosine", "the floor is train.final_ratio");
    miss(s, "schedules are cosine, linear and constant");
  }
  void take_schedule_options(const ConfigSetting& s) {
    const Json* rate = find_member(*s.value, "min_lr_rate");
    if (rate && rate->is_number()) return set(s, "train.final_ratio", *rate);
    miss(s, missing_reason(s.section, s.name));
  }
  void take_targets(const ConfigSetting& s) {
    const experiment::Parameter* targets = experiment::find_parameter("lora.targets");
    if (is_list_of_text(*s.value)) {
      if (!experiment::check_value(*targets, "lora.targets", *s.value)) return set(s, "lora.targets", *s.value);
      return miss(s, "a module is none of the projections that get adapters; they are " + joined(targets->choices));
    }
    if (*s.value == "all-linear") return set(s, "lora.targets", targets->choices, "every linear layer of the decoder");
    if (s.value->is_string())
      return set(s, "lora.module_path", *s.value, "an expression; the local engine uses lora.targets");
    miss(s, "not a list of module names");
  }
  void take_liger(const ConfigSetting& s) {
    if (*s.value != true) return miss(s, "train.loss_chunk decides");
    set(s, "train.loss_chunk", kChunk,
        "Liger's fused cross-entropy never holds all logits; here they are computed by " + std::to_string(kChunk) +
            " rows");
  }
  void take_loss_type(const ConfigSetting& s) {
    if (*s.value == "chunked_nll") return set(s, "train.loss_chunk", kChunk);
    if (*s.value == "nll") return set(s, "train.loss_chunk", 0);
    miss(s, "the loss is the cross-entropy");
  }
  void take_assistant_loss(const ConfigSetting& s) {
    if (*s.value != true) return miss(s, "data.loss decides");
    set(s, "data.loss", "assistant");
  }
  void take_completion_loss(const ConfigSetting& s) { set(s, "data.loss", *s.value == true ? "completion" : "all"); }

  void take_axis(const ConfigSetting& s) {
    if (!s.value->is_number_integer()) return miss(s, "not a number");
    const std::string axis = s.name.find("replicate") != std::string::npos ? "data"
                             : s.name.find("shard") != std::string::npos   ? "fsdp"
                                                                           : "tp";
    if (*s.value == 1) return miss(s, "an axis of one device splits nothing");
    set(s, "mesh." + axis, *s.value);
    has_axes_ = has_axes_ || is_set("mesh." + axis);
  }

  // -- settings that depend on others ---------------------------------------------------------------------------

  void keep_warmup(const ConfigSetting& s) {
    if (!warmup_) return void(warmup_ = s);
    if (!is_positive(s)) return miss(s, warmup_->name + " decides");
    miss(*warmup_, s.name + " decides");
    warmup_ = s;
  }
  void keep_steps(const ConfigSetting& s) {
    if (is_positive(s)) return void(steps_ = s);
    miss(s, "train.epochs decides");
  }
  void keep_batch(const ConfigSetting& s) { batch_ = s; }
  void keep_checkpointing(const ConfigSetting& s) { checkpointing_.push_back(s); }
  void keep_processes(const ConfigSetting& s) {
    if (!s.value->is_number_integer() || *s.value < 1 || *s.value > 65536)
      return miss(s, "a number of devices from 1 to 65536 is needed");
    out_.processes = s.value->get<int>();
    processes_ = s;
  }
  void keep_machines(const ConfigSetting& s) {
    machines_ = s.value->is_number_integer() && *s.value >= 1 && *s.value <= 65536 ? s.value->get<int>() : 1;
    miss(s, "nodes of a target follow from the number of devices");
  }
  void keep_distribution(const ConfigSetting& s) {
    distribution_ = s.value->is_string() ? s.value->get<std::string>() : "";
    miss(s, "the axes of the mesh say it (num_processes)");
  }
  void keep_zero_stage(const ConfigSetting& s) {
    zero_stage_ = s.value->is_number_integer() && *s.value >= 0 && *s.value <= 3 ? s.value->get<int>() : 0;
    miss(s, zero_stage_ == 3 ? "ZeRO 3 splits weights as the axis fsdp does (num_processes)"
                             : "weights are replicated; plans do not split optimizer state alone");
  }
  void keep_sharding(const ConfigSetting& s) {
    sharding_ = s.value->is_string() ? lower_case(s.value->get<std::string>()) : "";
    miss(s, "the axes of the mesh say it (num_processes)");
  }

  std::int64_t batch_devices() const {
    std::int64_t devices = 1;
    for (const std::string_view axis : {"mesh.fsdp", "mesh.data"})
      if (const Json* size = out_.experiment.find(axis)) devices *= size->get<std::int64_t>();
    return devices;
  }

  // Needs the mesh. The experiment counts rows over all devices.
  void take_batch() {
    if (processes_ && !has_axes_) set_process_axes();
    if (!batch_) return;
    if (!is_positive(*batch_) || batch_->value->get<double>() > 65536) return miss(*batch_, "not a number of rows");
    const std::int64_t devices = batch_devices();
    const auto rows = static_cast<std::int64_t>(batch_->value->get<double>()) * devices;
    set(*batch_, "train.batch", rows,
        devices > 1 ? counted(devices, "device") + " with " + batch_->value->dump() + " each" : "");
  }

  void set_process_axes() {
    const int n = out_.processes;
    const bool weights_stay = distribution_ == "MULTI_GPU" || sharding_ == "no_shard" || sharding_ == "3" ||
                              (distribution_ == "DEEPSPEED" && zero_stage_ < 3);
    if (weights_stay) return set(*processes_, "mesh.data", n, "every device holds all weights");
    const bool hybrid = sharding_.starts_with("hybrid") && machines_ > 1 && n % machines_ == 0;
    if (hybrid) set(*processes_, "mesh.data", machines_, "hybrid sharding: weights are split within a node");
    set(*processes_, "mesh.fsdp", hybrid ? n / machines_ : n);
  }
  // Axes that Accelerate names itself; the number of processes is then their product.
  void take_mesh() {
    if (processes_ && has_axes_) miss(*processes_, "the sizes of parallelism_config say it");
    if (!processes_ && !has_axes_ && trainer_)
      out_.assumed.push_back({"mesh.fsdp", 1,
                              "the files do not give the number of processes; pass the configuration "
                              "of Accelerate"});
    if (const Json* mesh = out_.experiment.find("mesh"); has_axes_ && mesh) {
      std::int64_t devices = 1;
      for (const auto& [axis, size] : mesh->items())
        devices = std::min<std::int64_t>(65536, devices * size.get<std::int64_t>());
      out_.processes = static_cast<int>(devices);
    }
  }

  void take_steps() {
    if (steps_) {
      set(*steps_, "train.steps", *steps_->value);
      if (is_set("train.epochs") && is_set("train.steps")) {
        for (MappedSetting& m : out_.mapped)
          if (m.key == "train.epochs") m.note = "replaced by max_steps";
        out_.experiment.erase("train.epochs");
      }
    }
    if (!warmup_) return;
    const double value = warmup_->value->is_number() ? warmup_->value->get<double>() : -1;
    const bool ratio = warmup_->name == "warmup_ratio" || (value > 0 && value < 1);
    if (!ratio || value == 0) return set(*warmup_, "train.warmup_steps", ratio ? Json(0) : *warmup_->value);
    const Json* steps = out_.experiment.find("train.steps");
    if (!steps || value < 0 || value > 1)
      return miss(*warmup_, "a share of the steps, whose number the files do not give: set train.warmup_steps");
    const double warmup = std::ceil(value * steps->get<double>());
    set(*warmup_, "train.warmup_steps", static_cast<std::int64_t>(warmup), "rounded up, as transformers does");
  }

  // Two libraries can each turn it on; one that is off does not turn the other off.
  void take_checkpointing() {
    for (const ConfigSetting& s : checkpointing_)
      if (*s.value == true) set(s, "train.remat", "layer");
    for (const ConfigSetting& s : checkpointing_) {
      if (*s.value == true) continue;
      const bool decides = s.name == "gradient_checkpointing" && !is_set("train.remat");
      if (decides)
        set(s, "train.remat", "none");
      else
        miss(s, "gradient_checkpointing decides (train.remat)");
    }
  }

  void assume_defaults() {
    if (trainer_) {
      const char* source = trl_ ? kTrlDefault : kTrainerDefault;
      assume("train.learning_rate", trl_ ? 2e-5 : 5e-5, source);
      assume("train.schedule", "linear", source);
      assume("train.warmup_steps", 0, source);
      assume("train.remat", trl_ ? "layer" : "none", source);
      if (!batch_) assume("train.batch", 8 * batch_devices(), source);
      if (!is_set("train.steps")) assume("train.epochs", 3, source);
      assume("train.seed", 42, source);
      if (trl_) {
        assume("data.max_len", 1024, source);
        assume("train.loss_chunk", kChunk, "TRL's default loss (chunked_nll of TRL 1.10) never holds all logits");
      } else {
        assume("train.loss_chunk", 0, "transformers computes all logits at once");
      }
      assume("data.overlong", "truncate", source);
      assume("data.eval_fraction", 0, "the files hold out no rows by a share");
    }
    if (out_.adapters) {
      assume("lora.rank", 8, kPeftDefault);
      assume("lora.alpha", 8, kPeftDefault);
      if (!is_set("lora.module_path"))
        assume("lora.targets", Json::array({"q_proj", "v_proj"}), "PEFT's default for Gemma, Llama and Qwen");
    } else if (trainer_) {
      assume("train.method", "full", "the files configure no adapter");
    }
  }

  void take_target() {
    const bool given = !gpu_.empty();
    const std::string id = given ? gpu_ : std::to_string(out_.processes) + "xh100";
    const hardware::Target target = context_.catalogue.target(id);
    if (target.devices() != out_.processes)
      throw Error("PORT",
                  "the recipe has " + counted(out_.processes, "process") + ", the target " +
                      counted(target.devices(), "device"),
                  {.place = "--gpu",
                   .found = id,
                   .fix = "use a target with as many devices, e.g. " + std::to_string(out_.processes) + "xh100"});
    out_.experiment.set_value("target.id", id);
    if (!given) out_.assumed.push_back({"target.id", id, "the files do not name the GPU; choose it with --gpu"});
    if (target.chip.vendor == hardware::Vendor::gpu) assume("train.stack", "trl-fsdp", "the recipe is one of TRL");
  }

  const std::string& gpu_;
  const plan::PlanContext& context_;
  PortedRecipe out_;
  bool trl_ = false, trainer_ = false, has_axes_ = false;
  std::optional<ConfigSetting> warmup_, steps_, batch_, processes_;
  std::vector<ConfigSetting> checkpointing_;
  std::string distribution_, sharding_;
  int zero_stage_ = 0, machines_ = 1;
};

}  // namespace

PortedRecipe recipe_of(const std::vector<ConfigSetting>& settings, const std::string& gpu,
                       const plan::PlanContext& context) {
  return Mapper(gpu, context).map(settings);
}

PortedRecipe read_recipe(const std::vector<std::filesystem::path>& files, const std::string& gpu,
                         const plan::PlanContext& context) {
  std::vector<ConfigSetting> settings;
  for (const std::filesystem::path& file : files) {
    formats::ConfigFile read = formats::read_config_file(file);
    settings.insert(settings.end(), std::make_move_iterator(read.settings.begin()),
                    std::make_move_iterator(read.settings.end()));
  }
  PortedRecipe recipe = recipe_of(settings, gpu, context);
  for (const std::filesystem::path& file : files) recipe.files.push_back(file.string());
  if (!recipe.experiment.has("name") && !files.empty()) {
    std::string name = files.front().stem().string();
    recipe.experiment.set_value("name", name);
    recipe.assumed.push_back({"name", std::move(name), "the name of the file"});
  }
  return recipe;
}

}  // namespace mw::port
