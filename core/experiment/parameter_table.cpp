// SPDX-License-Identifier: Apache-2.0
// The rows of the parameter table.
#include "core/experiment/parameter_rows.h"

namespace mw::experiment {
namespace {

using namespace rows;
using model::DType;
using model::Stack;
constexpr double kLargestSeed = 9007199254740991.0;  // 2^53 - 1, the largest integer that a JSON number holds exactly

Parameter column_row(const std::string& column) {
  return text_row(
      "data.columns." + column,
      [column](BoundExperiment& config) -> std::string& { return config.data.columns[column]; }, "Column: " + column,
      "", "Name of the column that holds the " + column + ", if it is not the default one", kAdvanced);
}

Rows experiment_rows() {
  return {
      with(text_row("name", &BoundExperiment::name, "Name", "", "Name of the run in the Runs table"),
           {.names = {.trl = "run_name", .axolotl = "wandb_name", .llama_factory = "run_name"}}),
      text_row("note", &BoundExperiment::note, "Note", "",
               "Free text about the experiment: sources of its values, assumptions", kAdvanced),
      choice_row("kind", &BoundExperiment::kind, "Kind",
                 "Kind of experiment: training, time and memory by batch size, or serving", kAdvanced),
  };
}

Rows model_rows() {
  return {
      with(path_row("model.path", &options::Model::path, "Folder",
                    "Hugging Face folder with config.json, safetensors and tokenizer to load"),
           {.factor = "model", .confounder = "the model differs"}),
      with(text_row("model.id", &options::Model::id, "Catalogue id", "",
                    "A catalogue model for planning without its files: a Gemma such as gemma3-1b; for planning only a "
                    "Gemma 1, Gemma 3n, Llama, Qwen3 or Mistral such as gemma3n-e4b or llama3.1-8b"),
           {.telling = 3, .factor = "model", .confounder = "the model differs"}),
      choice_row("model.init", &options::Model::init, "Weights",
                 "Load the weights of the folder, or start from random weights (pretraining)", kAdvanced),
      path_row("model.tokenizer", &options::Model::tokenizer, "Tokenizer",
               "tokenizer.json or SentencePiece .model, if it is not in the model folder", kAdvanced),
  };
}

Rows target_rows() {
  return {
      with(text_row("target.id", &options::TargetOptions::id, "Target", "cpu",
                    "Hardware: cpu is this machine; others, such as v5p-8, v6e-8 or 2xh100, are for planning"),
           {.telling = 1, .factor = "chips and software"}),
      int_row("target.threads", &options::TargetOptions::threads, "Threads", {"threads", 0, 0, 1024},
              "CPU cores that the engine uses; 0 uses all cores", kAdvanced),
      with(real_row("target.memory_gib", &options::TargetOptions::memory_gib, "Memory limit", {"GiB", 0, 0, 7450},
                    "Capacity of the device's memory arena; 0 uses this machine's memory", kAdvanced),
           {.factor = "chips and software"}),
      // For plans only:
      with(text_row("price.region", &options::PriceOptions::region, "Price region", "",
                    "Region of the price to plan with; empty: the chip's first region in the price list", kAdvanced),
           {.factor = "chips and software"}),
      with(text_row("price.class", &options::PriceOptions::price_class, "Price class", "",
                    "on demand, spot, flex, calendar, 1y or 3y; empty: on demand, or the first in the list", kAdvanced),
           {.factor = "chips and software"}),
      with(real_row("price.usd_per_chip_hour", &options::PriceOptions::usd_per_chip_hour, "Custom price",
                    {"USD per chip-hour", 0, 0, 1e6}, "Price to use instead of the list price; 0: list price",
                    kAdvanced),
           {.factor = "chips and software"}),
      with(text_row("price.date", &options::PriceOptions::date, "Date of the custom price", "",
                    "Day of the custom price, as 2026-11-27; plans warn of it after 90 days; empty: they do not",
                    kAdvanced),
           {.factor = "chips and software"}),
  };
}

Rows budget_rows() {
  return {
      real_row(
          "budget.hours", &options::Budget::hours, "Hours", {"h", 0, 0, 1e6},
          "Longest time of a run: a plan says how many steps, epochs or rollouts fit, and training here stops before "
          "the step that would exceed it, with a checkpoint; 0: no limit"),
      real_row("budget.usd", &options::Budget::usd, "Cost", {"USD", 0, 0, 1e9},
               "Highest cost of a run at the price of the target; here at price.usd_per_chip_hour; 0: no limit"),
      real_row("budget.tokens", &options::Budget::tokens, "Tokens", {"tokens", 0, 0, 1e15},
               "Most tokens to train on, without padding; 0: no limit"),
  };
}

Rows mesh_rows() {
  return {
      with(int_row("mesh.*", &BoundExperiment::mesh, "Axis size", {"devices", 1, 1, 65536},
                   "Devices along this mesh axis (fsdp, tp, data)", kAdvanced),
           {.search = {.rule = "all meshes of the target that the model allows"},
            .telling = 2,
            .factor = "chips and software"}),
      with(choice_row("sharding.preset", &options::Sharding::preset, "Sharding",
                      "Sharding rules of the tensors; auto: the default of the software stack", kAdvanced),
           {.factor = "chips and software"}),
      with(free_list("sharding.overrides", &options::Sharding::overrides, "Sharding overrides", "", Json::array(),
                     "Specs of single tensors, first match wins: q_einsum = (tp, fsdp, -)"),
           {.factor = "chips and software"}),
      with(free_list("sharding.places", &options::Sharding::places, "Axis places", "", Json::array(),
                     "Physical grid dimensions to map an axis to: tp = 0, 1"),
           {.search = {.rule = "the axes that may cross the network between slices or nodes"},
            .factor = "chips and software"}),
  };
}

Rows lora_rows() {
  return held_by_recipes({
      applied(int_row("lora.rank", &options::Lora::rank, "Rank", {"", 16, 1, 4096},
                      "Inner dimension r of every adapter: A is [r, in], B is [out, r]"),
              {.names = {.trl = "r", .axolotl = "lora_r", .llama_factory = "lora_rank", .torchtune = "model.lora_rank"},
               .carried = kTraining,
               .telling = 5,
               .short_name = "r",
               .factor = "model"}),
      applied(real_row("lora.alpha", &options::Lora::alpha, "Alpha", {"", 16, 0, 65536},
                       "The adapter's output is scaled by alpha / rank"),
              {.names = in_trainers("lora_alpha", "model.lora_alpha"), .telling = 6, .short_name = "a"}),
      applied(real_row("lora.dropout", &options::Lora::dropout, "Dropout", {"", 0, 0, 0.99},
                       "Probability of zeroing an input of the adapter while training"),
              {.names = in_trainers("lora_dropout", "model.lora_dropout")}),
      applied(list_row("lora.targets", &options::Lora::targets, "Targets",
                       {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"},
                       "Projections that get an adapter")),
      applied(flag_row("lora.rslora", &options::Lora::rslora, "Rank-stabilised scaling",
                       "Scale by alpha / sqrt(rank) instead of alpha / rank", kAdvanced),
              {.names = {.trl = "use_rslora", .axolotl = "peft_use_rslora", .llama_factory = "use_rslora"}}),
      {flag_row("lora.dora", &options::Lora::dora, "DoRA",
                "Train the length of every row of W + scaling B A, too, as PEFT's use_dora does; without dropout",
                kAdvanced),
       RecipeColumn{RecipeEffect::not_supported, RecipeEffect::applied, RecipeEffect::applied,
                    "always false: an export with DoRA is rejected"},
       {.names = {.trl = "use_dora",
                  .axolotl = "peft_use_dora",
                  .llama_factory = "use_dora",
                  .torchtune = "model.use_dora"}}},
      {real_row("lora.plus_ratio", &options::Lora::plus_ratio, "LoRA+ ratio", {"times A's rate", 1, 1, 10000},
                "Learning rate of B, and of DoRA's lengths, as a multiple of A's; LoRA+ recommends 16; 1: the same",
                kAdvanced),
       RecipeColumn{RecipeEffect::not_supported, RecipeEffect::not_supported, RecipeEffect::applied,
                    "always 1: an export with LoRA+ is rejected"},
       {.names = {.axolotl = "loraplus_lr_ratio", .llama_factory = "loraplus_lr_ratio"}}},
      {map_row("lora.rank_pattern", &options::Lora::rank_pattern, "Rank per module",
               "Regex of module path to rank, as PEFT's rank_pattern", kAdvanced),
       RecipeColumn{RecipeEffect::not_supported, RecipeEffect::applied, RecipeEffect::applied,
                    "always empty: an export with a pattern is rejected"},
       {.names = {.trl = "rank_pattern"}}},
      {map_row("lora.alpha_pattern", &options::Lora::alpha_pattern, "Alpha per module",
               "Regex of module path to alpha, as PEFT's alpha_pattern", kAdvanced),
       RecipeColumn{RecipeEffect::not_supported, RecipeEffect::applied, RecipeEffect::applied,
                    "always empty: an export with a pattern is rejected"},
       {.names = {.trl = "alpha_pattern"}}},
      applied(text_row(
          "lora.module_path", &options::Lora::module_path, "Expression", "",
          "Modules with LoRA in exported recipes: Qwix's module_path (.*q_einsum|...) or PEFT's target_modules; "
          "empty: derived from "
          "the targets. The local engine uses the targets",
          kAdvanced)),
      applied(path_row("lora.adapter", &options::Lora::adapter, "Start from",
                       "PEFT adapter folder to load before training or generating", kAdvanced)),
  });
}

Rows data_rows() {
  return held_by_recipes({
      applied(
          path_row(
              "data.path", &options::Data::path, "File",
              "JSONL, JSON, CSV, TSV or plain text file with the training examples, .gz or .zst if compressed; or a "
              "pattern of several: data/*.jsonl"),
          {.confounder = "the training data differ"}),
      applied(
          text_row("data.source", &options::Data::source, "Source", "",
                   "Dataset of the Hugging Face hub that an exported recipe loads if there is no file: alpaca, gsm8k, "
                   "codev-r1, OWNER/NAME or OWNER/NAME@REVISION; sets format, columns and rows where they are not set",
                   kAdvanced)),
      applied(choice_row("data.format", &options::Data::format, "Format",
                         "How rows are parsed; auto decides by the file extension and the first row")),
      applied(column_row("prompt")),
      applied(column_row("completion")),
      applied(column_row("text"), {.names = {.trl = "dataset_text_field"}}),
      applied(column_row("messages")),
      applied(column_row("system")),
      applied(column_row("input")),
      applied(int_row("data.max_len", &options::Data::max_len, "Longest row", {"tokens", 512, 4, 1048576},
                      "Rows longer than this are dropped or truncated; packed rows are filled up to it"),
              {.names = {.trl = "max_length",
                         .axolotl = "sequence_len",
                         .llama_factory = "cutoff_len",
                         .torchtune = "tokenizer.max_seq_len"},
               .carried = kTraining,
               .telling = 11,
               .short_name = "len ",
               .confounder = "rows are truncated or dropped at different lengths"}),
      applied(flag_row("data.packing", &options::Data::packing, "Packing",
                       "Pack several short examples into one row, with separate attention and positions"),
              {.names = {.trl = "packing",
                         .axolotl = "sample_packing",
                         .llama_factory = "packing",
                         .torchtune = "dataset.packed"},
               .search = {{}, {"true"}},
               .carried = kTraining,
               .confounder = "packing differs, so a step covers different tokens"}),
      applied(choice_row("data.loss", &options::Data::loss, "Loss on",
                         "Which tokens carry loss: the last answer, every assistant turn, or everything"),
              {.confounder = "the loss mask differs, so the loss covers different tokens"}),
      applied(choice_row("data.overlong", &options::Data::overlong, "Overlong rows",
                         "Drop or truncate rows longer than the limit (both are counted)"),
              {.confounder = "the treatment of long rows differs"}),
      applied(flag_row("data.dedup", &options::Data::drops_duplicates, "Drop duplicates",
                       "Drop training rows that are equal to an earlier one or to a held-out row (both are counted)"),
              {.confounder = "the treatment of duplicate rows differs"}),
      applied(choice_row("data.on_error", &options::Data::on_error, "Bad rows",
                         "Stop at the first malformed row, or skip and count it", kAdvanced)),
      applied(choice_row(
          "data.chat", &options::Data::requested_chat, "Chat template",
          "How prompts and answers are rendered; auto uses the template in the model's folder, or that of its family",
          kAdvanced)),
      {path_row("data.lengths", &options::Data::lengths, "Lengths file",
                "Histogram of row lengths (JSON or CSV of tokens, rows), for planning without a data file", kAdvanced),
       only_planned("used for planning only: data/rows.safetensors has the rows")},
      applied(real_row("data.eval_fraction", &options::Data::eval_fraction, "Held out", {"of rows", 0.05, 0, 0.9},
                       "Share of the rows kept for evaluation, chosen by seed and row, if there is no evaluation file"),
              {.names = {.axolotl = "val_set_size", .llama_factory = "val_size"}}),
      applied(
          path_row(
              "data.eval_path", &options::Data::eval_path, "Evaluation file",
              "File or pattern of files whose rows are the held-out rows; then all rows of data.path are for training",
              kAdvanced),
          {.confounder = "the evaluation data differ"}),
      // For plans only:
      {real_row("data.mean_len", &options::Data::mean_len, "Mean row", {"tokens", 0, 0, 1048576},
                "Mean row length if there is no histogram; 0: every row has the maximum length", kAdvanced),
       only_planned("used for planning only: data/rows.safetensors has the rows"),
       {.carried = kTraining}},
      {int_row("data.rows", &options::Data::rows, "Rows", {"rows", 0, 0, 1e12},
               "Number of data rows if there is no histogram", kAdvanced),
       only_planned("used for planning only: data/rows.safetensors has the rows")},
      {choice_row("data.padding", &options::Data::padding, "Padding",
                  "Length to which a planned step pads rows; auto: max_len with compiled shapes, else the longest row "
                  "of the batch",
                  kAdvanced),
       only_planned("used for planning only: rows are padded to one length"),
       {.carried = kTraining}},
  });
}

// A list that is empty by default.
Parameter none_of(Parameter p) {
  p.fallback = Json::array();
  return p;
}

Rows training_rows() {
  return held_by_recipes({
      applied(choice_row("train.method", &options::Training::method, "Method",
                         "Train LoRA adapters on the frozen model, or every weight"),
              {.telling = 4}),
      applied(int_row("train.steps", member(&options::Training::rate, &options::LearningRateSchedule::steps), "Steps",
                      {"steps", 200, 1, kMany}, "Optimizer steps; ignored if train.epochs is above 0"),
              {.search = {.rule = "those of the same data, packed"},
               .telling = 8,
               .short_name = "steps ",
               .confounder = "the number of steps differs"}),
      applied(
          real_row(
              "train.epochs", &options::Training::epochs, "Epochs", {"", 0, 0, 1e6},
              "Passes over the training rows, instead of train.steps: rows x epochs / (batch x accumulation) steps, "
              "at least 1; 0: train.steps is used",
              kAdvanced),
          {.names = {.trl = "num_train_epochs",
                     .axolotl = "num_epochs",
                     .llama_factory = "num_train_epochs",
                     .torchtune = "epochs"},
           .confounder = "the number of passes over the data differs"}),
      applied(int_row("train.batch", &options::Training::batch, "Batch", {"rows", 8, 1, 65536},
                      "Rows per forward and backward pass (micro-batch), over all devices of the mesh"),
              {.search = {.rule = "parts of the rows of a step"}, .carried = kTraining}),
      applied(int_row("train.accumulation", &options::Training::accumulation, "Accumulation",
                      {"micro-batches", 1, 1, 65536},
                      "Micro-batches whose gradients are accumulated for one optimizer step"),
              {.names = in_trainers("gradient_accumulation_steps", "gradient_accumulation_steps"),
               .search = {.rule = "parts of the rows of a step"},
               .carried = kTraining}),
      applied(real_row("train.learning_rate", member(&options::Training::rate, &options::LearningRateSchedule::peak),
                       "Learning rate", {"", 2e-4, 0, 10}, "Peak learning rate of AdamW"),
              {.names = in_trainers("learning_rate", "optimizer.lr"), .telling = 7, .short_name = "lr "}),
      applied(choice_row("train.schedule", member(&options::Training::rate, &options::LearningRateSchedule::schedule),
                         "Schedule", "Decay of the learning rate after warm-up")),
      applied(int_row("train.warmup_steps", member(&options::Training::rate, &options::LearningRateSchedule::warmup),
                      "Warm-up", {"steps", 10, 0, kMany}, "Steps over which the learning rate rises from zero")),
      applied(real_row("train.final_ratio",
                       member(&options::Training::rate, &options::LearningRateSchedule::final_ratio), "Final ratio",
                       {"of peak", 0, 0, 1}, "Final learning rate as a share of the peak rate", kAdvanced)),
      applied(real_row("train.weight_decay", member(&options::Training::adamw, &options::AdamWOptions::weight_decay),
                       "Weight decay", {"", 0, 0, 10}, "Decoupled weight decay of AdamW (not on norms)", kAdvanced),
              {.names = in_trainers("weight_decay", "optimizer.weight_decay")}),
      applied(real_row("train.beta1", member(&options::Training::adamw, &options::AdamWOptions::beta1), "Beta 1",
                       {"", 0.9, 0, 0.99999}, "Decay of AdamW's first moment", kAdvanced),
              {.names = in_trainers("adam_beta1")}),
      applied(real_row("train.beta2", member(&options::Training::adamw, &options::AdamWOptions::beta2), "Beta 2",
                       {"", 0.999, 0, 0.999999}, "Decay of AdamW's second moment", kAdvanced),
              {.names = in_trainers("adam_beta2")}),
      applied(real_row("train.epsilon", member(&options::Training::adamw, &options::AdamWOptions::epsilon), "Epsilon",
                       {"", 1e-8, 0, 1}, "Added to the root of AdamW's second moment", kAdvanced),
              {.names = in_trainers("adam_epsilon", "optimizer.eps")}),
      applied(real_row("train.clip", &options::Training::clip, "Gradient clipping", {"", 1, 0, 1e9},
                       "Largest global gradient norm; 0 turns clipping off", kAdvanced),
              {.names = in_trainers("max_grad_norm", "clip_grad_norm")}),
      applied(
          real_row("train.label_smoothing", &options::Training::label_smoothing, "Label smoothing", {"", 0, 0, 0.99},
                   "Share of every target that is spread evenly over the vocabulary, in training and evaluation, as "
                   "transformers' label_smoothing_factor; 0: none",
                   kAdvanced),
          {.names = {.trl = "label_smoothing_factor", .llama_factory = "label_smoothing_factor"},
           .confounder = "label smoothing differs, so the loss is another"}),
      applied(choice_row("train.remat", &options::Training::remat, "Remat",
                         "Activations recomputed in the backward pass: none, inside blocks, or whole layers"),
              {.search = {{"none", "block", "layer"}}, .carried = kTraining}),
      {int_row("train.loss_chunk", &options::Training::loss_chunk, "Loss chunk", {"rows", 256, 0, 1048576},
               "Rows of logits held in memory at once in the cross-entropy; 0 is all of them"),
       not_supported("the scripts compute all logits at once: same loss, more memory"),
       {.search = {{"0", "256", "1024"}, {"128", "512"}}, .carried = kTraining}},
      applied(choice_row("train.dtype", &options::Training::dtype, "Weights",
                         "Storage type of the weights; accumulation is always f32. int8: generation and sizing only"),
              {.readers = Readers{kEveryKind, kEveryKind},
               .carried = kTraining | kSizing | kServing,
               .telling = 9,
               .factor = "model",
               .confounder = "the data type of the computation differs"}),
      {choice_row("train.save_dtype", &options::Training::save_dtype, "Saved as",
                  "Type of the model file that full training writes", kAdvanced,
                  {model::DType::bf16, model::DType::f32}),
       not_supported("applies to full training; adapters are saved as f32")},
      applied(int_row("train.seed", &options::Training::seed, "Seed", {"", 1, 0, kLargestSeed},
                      "Seed of all random numbers of the run"),
              {.readers = Readers{kEveryKind, kEveryKind},
               .names = in_trainers("seed", "seed"),
               .telling = 10,
               .short_name = "seed ",
               .confounder = "the seed differs"}),
      applied(int_row("train.eval_every", &options::Training::eval_every, "Evaluate every", {"steps", 50, 0, kMany},
                      "Steps between evaluations; 0: only before and after training", kAdvanced),
              {.names = in_trainers("eval_steps")}),
      applied(int_row("train.eval_rows", &options::Training::eval_rows, "Evaluation rows", {"rows", 64, 0, kMany},
                      "Maximum number of held-out rows used for one eval loss", kAdvanced)),
      applied(int_row("train.sample_every", &options::Training::sample_every, "Sample every", {"steps", 50, 0, kMany},
                      "Steps between sampled answers to fixed held-out prompts; 0: none", kAdvanced)),
      applied(int_row("train.sample_prompts", &options::Training::sample_prompts, "Sample prompts",
                      {"prompts", 3, 0, 64}, "Number of held-out prompts answered each time", kAdvanced)),
      applied(int_row("train.answers", &options::Training::answers, "Scored answers", {"prompts", 0, 0, 10000},
                      "Held-out prompts that the base and the tuned model answer, scored as right or wrong",
                      kAdvanced)),
      applied(int_row("train.checkpoint_every", &options::Training::checkpoint_every, "Checkpoint every",
                      {"steps", 100, 0, kMany}, "Steps between checkpoints; 0: only at the end", kAdvanced),
              {.names = in_trainers("save_steps")}),
      applied(int_row("train.keep_checkpoints", &options::Training::keep_checkpoints, "Checkpoints kept",
                      {"", 2, 1, 1000}, "Number of checkpoints to keep; older ones are removed", kAdvanced),
              {.names = in_trainers("save_total_limit")}),
      {choice_row("train.keep_best", &options::Training::keep_best, "Best checkpoint",
                  "Keep the best checkpoint beside the newest ones: by the loss on held-out rows, or by the share of "
                  "train.answers that are right; merging, generating and serving take it",
                  kAdvanced),
       not_supported("the scripts keep the newest checkpoints; `differences` says so if it is set")},
      {int_row("train.patience", &options::Training::patience, "Patience", {"evaluations", 0, 0, kMany},
               "End the run after this many evaluations without a better one than before, by what train.keep_best "
               "compares, else by the loss; 0: never",
               kAdvanced),
       not_supported("the scripts make all steps; `differences` says so if it is set"),
       {.names = {.axolotl = "early_stopping_patience"}}},
      {path_row(
           "train.tensorboard", &options::Training::tensorboard, "TensorBoard",
           "Folder for TensorBoard files of the curves, written while the run trains, one subfolder per run; empty: "
           "none",
           kAdvanced),
       not_supported("curves are sent as events, which Meshwright records")},
      // For plans only:
      {choice_row("train.stack", &options::Training::stack, "Software",
                  "Training software on the target; auto: tunix on TPU, trl-fsdp on GPU, the engine on this machine",
                  kAdvanced,
                  {Stack::engine, Stack::tunix, Stack::torchax, Stack::maxtext, Stack::trl_fsdp, Stack::torchtune,
                   Stack::torchtitan, Stack::megatron}),
       kOnlyPlanned,
       {.readers = Readers{kEveryKind, kEveryKind},
        .search = {.rule = "tunix and torchax for each other"},
        .carried = kTraining}},
      {choice_row("train.attention", &options::Training::attention, "Attention",
                  "Attention scores in memory or in a fused kernel, for plans; auto: the default of the software",
                  kAdvanced),
       kOnlyPlanned,
       {.readers = Readers{kTraining, kTraining | kSizing},
        .search = {{}, {"materialised", "fused"}},
        .carried = kTraining}},
      {choice_row("train.adapter_dtype", &options::Training::adapter_dtype, "Adapters",
                  "Type of adapters and their gradients in a plan; auto: the default of the software", kAdvanced,
                  {DType::bf16, DType::f32}),
       kOnlyPlanned,
       {.search = {{}, {"bf16", "f32"}}, .carried = kTraining}},
      {choice_row("train.moment_dtype", &options::Training::moment_dtype, "Moments",
                  "Type of Adam's moments in a plan; auto: the default of the software", kAdvanced,
                  {DType::bf16, DType::f32}),
       kOnlyPlanned,
       {.search = {{}, {"bf16", "f32"}}, .carried = kTraining}},
      {choice_row(
           "train.products", &options::Training::products, "Products",
           "Type of the layers' matrix products in a plan; fp8 with MaxText, torchtitan and Megatron-LM on chips "
           "with a known fp8 peak",
           kAdvanced, {DType::bf16, DType::fp8}),
       kOnlyPlanned,
       {.readers = Readers{kNoKind, kTraining}, .offered = [](const Offers& o) { return o.fp8_products; }}},
      {none_of(list_row("train.saved", &options::Training::saved, "Saved activations",
                        names_of<options::SavedActivation>(),
                        "Activations of a layer that remat keeps instead of recomputing them in a plan; with MaxText, "
                        "torchtitan and Megatron-LM",
                        kAdvanced)),
       not_supported("always empty: an export with names is rejected"),
       {.readers = Readers{kNoKind, kTraining}, .offered = [](const Offers& o) { return o.saved_by_name; }}},
      {choice_row("train.offload", &options::Training::offload, "Offload",
                  "Where a plan stores the activations that remat keeps: on the device, or in the memory of the host "
                  "(MaxText, TRL, torchtune, Megatron-LM)",
                  kAdvanced),
       not_supported("always none: an export with offload is rejected"),
       {.readers = Readers{kNoKind, kTraining}, .offered = [](const Offers& o) { return o.offload; }}},
      {choice_row("train.compile", &options::Training::compile, "Compilation",
                  "Kernels of a plan: one per operation (eager), or fused by torch.compile; auto: the default of the "
                  "software",
                  kAdvanced),
       not_supported("always auto: an export with a choice is rejected"),
       {.readers = Readers{kNoKind, kTraining | kSizing}, .offered = [](const Offers& o) { return o.compile_choice; }}},
      {real_row("train.logit_bytes", &options::Training::logit_bytes, "Bytes per logit", {"B", 0, 0, 64},
                "Bytes per logit at the peak of a planned step, all copies; 0: the default of the software", kAdvanced),
       kOnlyPlanned,
       {.readers = Readers{kNoKind, kTraining}}},
      {int_row("train.other_models", &options::Training::other_models, "Other models", {"copies", 0, 0, 16},
               "Further copies of the base weights on the devices of a plan, such as a reference model", kAdvanced),
       kOnlyPlanned,
       {.readers = Readers{kNoKind, kTraining | kSizing}}},
  });
}

Rows sampling_rows() {
  return {
      int_row("sample.max_new_tokens", &options::SampleOptions::max_new_tokens, "Longest answer",
              {"tokens", 48, 1, 1048576}, "Maximum number of generated tokens", kAdvanced),
      real_row("sample.temperature", &options::SampleOptions::temperature, "Temperature", {"", 0, 0, 10},
               "Sampling temperature; 0 is greedy decoding", kAdvanced),
      int_row("sample.top_k", &options::SampleOptions::top_k, "Top-k", {"tokens", 0, 0, 1048576},
              "Sample among the k most likely tokens; 0 is off", kAdvanced),
      real_row("sample.top_p", &options::SampleOptions::top_p, "Top-p", {"", 1, 0.0001, 1},
               "Sample among the most likely tokens whose probabilities sum to p; 1 is off", kAdvanced),
      real_row("sample.min_p", &options::SampleOptions::min_p, "Min-p", {"", 0, 0, 1},
               "Drop tokens less likely than this share of the likeliest token; 0 is off", kAdvanced),
      int_row("sample.seed", &options::SampleOptions::seed, "Seed", {"", 1, 0, kLargestSeed}, "Seed of sampled text",
              kAdvanced),
  };
}

Rows sizing_rows() {
  return {
      list_row("size.workloads", &options::Sizing::workloads, "Workloads", names_of<options::Workload>(),
               "Generation with a KV cache, or log-probabilities with all logits at once or in chunks", kAdvanced),
      free_list("size.batches", &options::Sizing::batches, "Batches", "rows", Json::array({1, 2, 4, 8, 16}),
                "Batch sizes to measure, one point each per workload"),
      with(int_row("size.prompt_len", &options::Sizing::prompt_len, "Prompt", {"tokens", 256, 1, 1048576},
                   "Prompt length of each row; the forward workloads process prompt and answer", kAdvanced),
           {.carried = kSizing}),
      with(int_row("size.new_tokens", &options::Sizing::new_tokens, "New tokens", {"tokens", 64, 1, 1048576},
                   "Tokens each row generates in a rollout", kAdvanced),
           {.carried = kSizing}),
      int_row("size.cache_len", &options::Sizing::cache_len, "Cache", {"tokens", 0, 0, 1048576},
              "Tokens of KV cache per row of a planned rollout; 0: prompt and new tokens", kAdvanced),
      int_row("size.forward_len", &options::Sizing::forward_len, "Forward", {"tokens", 0, 0, 1048576},
              "Tokens per row of a planned forward; 0: prompt and new tokens", kAdvanced),
      int_row("size.top_k", &options::Sizing::top_k, "Top-k kept", {"tokens", 128, 1, 262144},
              "Most likely tokens that the chunked forward keeps per position", kAdvanced),
      int_row("size.chunk", &options::Sizing::chunk, "Chunk", {"rows", 64, 1, 1048576},
              "Rows of logits held in memory at once in the chunked forward", kAdvanced),
      flag_row("size.adapters", &options::Sizing::adapters, "With adapters",
               "Measure with LoRA attached: the adapter of lora.adapter, else a new one of lora.rank and targets",
               kAdvanced),
  };
}

Rows serving_rows() {
  return {
      // For plans:
      with(choice_row(
               "serve.stack", &options::Serving::stack, "Software",
               "Serving software on the target; it sets the defaults of block, batched tokens, chunked prefill, prefix "
               "cache and async scheduling",
               kAdvanced, {Stack::vllm_tpu, Stack::vllm_gpu, Stack::tensorrt_llm, Stack::sglang, Stack::jetstream}),
           {.carried = kServing, .factor = "chips and software"}),
      with(choice_row(
               "serve.weight_dtype", &options::Serving::weight_dtype, "Weights",
               "Type of the served weights in a plan; fp8 and int8 quantise linear layers only; auto: train.dtype",
               kAdvanced, {DType::bf16, DType::fp8, DType::int8, DType::f32}),
           {.readers = Readers{kNoKind, kTraining | kServing}, .confounder = "weight type"}),
      with(choice_row(
               "serve.products", &options::Serving::products, "Products",
               "Type of the layers' matrix products in a plan; fp8 needs weights in fp8 and a chip with a known fp8 "
               "peak",
               kAdvanced, {DType::bf16, DType::fp8}),
           {.readers = Readers{kNoKind, kTraining | kServing},
            .offered = [](const Offers& o) { return o.fp8_products; }}),
      with(int_row("serve.max_num_seqs", &options::Serving::max_num_seqs, "Sequences", {"sequences", 64, 1, 65536},
                   "Maximum number of requests in one decode step", kAdvanced),
           {.names = {.vllm = "max-num-seqs"},
            .search = {{"16", "32", "64", "128", "256", "512"}},
            .carried = kServing,
            .factor = "server limits",
            .confounder = "max_num_seqs"}),
      with(int_row("serve.max_model_len", &options::Serving::max_model_len, "Longest request",
                   {"tokens", 4096, 1, 1048576}, "Maximum length of a request: prompt and answer", kAdvanced),
           {.names = {.vllm = "max-model-len"},
            .carried = kServing,
            .factor = "server limits",
            .confounder = "max_model_len"}),
      with(int_row("serve.max_num_batched_tokens", &options::Serving::max_num_batched_tokens, "Batched tokens",
                   {"tokens", 2048, 1, 1048576}, "Maximum number of tokens in one step, including prefill", kAdvanced),
           {.names = {.vllm = "max-num-batched-tokens"},
            .carried = kServing,
            .factor = "chunked prefill",
            .confounder = "max_num_batched_tokens"}),
      with(choice_row("serve.kv_dtype", &options::Serving::kv_dtype, "KV cache", "Type of keys and values in the cache",
                      kAdvanced, {DType::bf16, DType::fp8, DType::f32, DType::int8}),
           {.names = {.vllm = "kv-cache-dtype"},
            .search = {{"bf16", "fp8"}},
            .carried = kServing,
            .telling = 12,
            .short_name = "KV ",
            .factor = "KV type",
            .confounder = "KV cache type"}),
      with(on_row("serve.sliding_window_kv", &options::Serving::sliding_window_kv, "Window caches",
                  "Sliding-window layers cache only their window (off: every layer caches every token)", kAdvanced),
           {.carried = kServing, .factor = "window caches", .confounder = "freeing of KV outside sliding windows"}),
      with(flag_row(
               "serve.async_scheduling", &options::Serving::async_scheduling, "Async scheduling",
               "The host schedules the next step while one runs and sees requests one step later (vLLM's default as of "
               "0.19)",
               kAdvanced),
           {.names = {.vllm = "async-scheduling"},
            .carried = kServing,
            .factor = "server limits",
            .confounder = "async scheduling"}),
      with(choice_row(
               "serve.sampling", &options::Serving::sampling, "Sampling",
               "How planned servers draw tokens: greedy (temperature 0), or with top-k and top-p, which a model's own "
               "generation_config may ask for; its time is modelled for vLLM on TPUs",
               kAdvanced),
           {.carried = kServing, .factor = "server limits", .confounder = "sampling"}),
      with(real_row("serve.memory_utilisation", &options::Serving::memory_utilisation, "Memory used",
                    {"of capacity", 0.9, 0.05, 1}, "Share of the device memory that the server may use", kAdvanced),
           {.names = {.vllm = "gpu-memory-utilization"}, .carried = kServing, .factor = "server limits"}),
      with(int_row("serve.input_len", &options::Serving::input_len, "Prompt", {"tokens", 1024, 1, 1048576},
                   "Prompt length of the planned requests", kAdvanced),
           {.carried = kServing}),
      with(int_row("serve.output_len", &options::Serving::output_len, "Answer", {"tokens", 512, 1, 1048576},
                   "Answer length of the planned requests", kAdvanced),
           {.carried = kServing}),
      text_row("serve.target", &options::Serving::target, "Serving target", "",
               "Target that serves the tuned model, for the combined cost of training and serving", kAdvanced),
      real_row("serve.usd_per_chip_hour", &options::Serving::usd_per_chip_hour, "Custom price",
               {"USD per chip-hour", 0, 0, 1e6}, "Price of the serving target instead of the list price; 0: list price",
               kAdvanced),
      free_list("serve.hours", &options::Serving::hours, "Hours", "h", {1, 8, 24},
                "Hours of serving for which the total cost of training and serving is computed"),
      // For servers:
      with(on_row("serve.prefix_cache", &options::Serving::prefix_cache, "Prefix cache",
                  "Keep KV blocks of finished prompts and reuse them for prompts with the same prefix (vLLM's default)",
                  kAdvanced),
           {.names = {.vllm = "enable-prefix-caching"}, .factor = "prefix cache", .confounder = "prefix cache"}),
      with(on_row(
               "serve.chunked_prefill", &options::Serving::chunked_prefill, "Chunked prefill",
               "Split long prompts into chunks that share steps with decoding (off: a prompt is computed in one step)",
               kAdvanced),
           {.names = {.vllm = "enable-chunked-prefill"},
            .carried = kServing,
            .factor = "chunked prefill",
            .confounder = "chunked prefill"}),
      with(int_row("serve.block_size", &options::Serving::block_size, "Block", {"tokens", 16, 1, 1024},
                   "Tokens per block of the KV cache", kAdvanced),
           {.names = {.vllm = "block-size"}, .factor = "server limits"}),
      with(choice_row("serve.policy", &options::Serving::policy, "Order",
                      "First come first served, or by the request's priority", kAdvanced),
           {.names = {.vllm = "scheduling-policy"}, .factor = "server limits"}),
      real_row(
          "serve.kv_gib", &options::Serving::kv_gib, "KV cache", {"GiB", 0, 0, 65536},
          "Memory for KV blocks when the engine serves; 0: what max_num_seqs requests of full length need, at most "
          "half of what is free",
          kAdvanced),
      int_row("serve.queue", &options::Serving::queue, "Queue", {"requests", 256, 0, 1000000},
              "Requests that may wait before the server answers 429", kAdvanced),
      with(folders_row("serve.adapters", &options::Serving::adapters, "Adapters",
                       "PEFT adapter folders, keyed by the model name in the request", kAdvanced),
           {.names = {.vllm = "lora-modules"}}),
  };
}

Rows sweep_rows() {
  return {
      choice_row(
          "sweep.backend", &options::Sweep::backend, "Backend",
          "Serving backend: this engine, the cost model of the target, or a server over HTTP; auto: the engine on cpu, "
          "else the model",
          kAdvanced),
      with(text_row("sweep.url", &options::Sweep::url, "Server", "",
                    "Base address of an OpenAI-compatible server, e.g. http://127.0.0.1:8000", kAdvanced),
           {.names = {.vllm = "base-url"}}),
      text_row("sweep.model", &options::Sweep::model, "Served model", "",
               "Model name on the server; empty: the server's first model", kAdvanced),
      with(free_list("sweep.request_rates", &options::Sweep::request_rates, "Rates", "requests/s",
                     Json::array({1, 2, 4, 8, 16, 32, 64}),
                     "Offered request rates, one point per rate and input length; \"inf\": all at once"),
           {.names = {.vllm = "request-rate"}}),
      with(free_list("sweep.input_lens", &options::Sweep::input_lens, "Prompts", "tokens", Json::array({512}),
                     "Input lengths to measure"),
           {.names = {.vllm = "random-input-len"}}),
      with(int_row("sweep.output_len", &options::Sweep::output_len, "Answer", {"tokens", 128, 1, 1048576},
                   "Tokens that every request generates", kAdvanced),
           {.names = {.vllm = "random-output-len"}}),
      with(int_row("sweep.num_prompts", &options::Sweep::num_prompts, "Requests", {"requests", 100, 1, 10000000},
                   "Requests per measured point", kAdvanced),
           {.names = {.vllm = "num-prompts"}}),
      free_list(
          "sweep.num_prompts_at", &options::Sweep::num_prompts_at, "Requests at a length", "tokens:requests",
          Json::array(),
          "Other numbers of requests for points of some input lengths: 15360:6 sends six requests at 15,360 tokens"),
      with(int_row("sweep.warmups", &options::Sweep::warmups, "Warm-up", {"requests", 0, 0, 100000},
                   "Warm-up requests before each point, not counted in the result", kAdvanced),
           {.names = {.vllm = "num-warmups"}}),
      with(choice_row("sweep.arrival", &options::Sweep::arrival, "Arrival",
                      "Open loop at random or equal intervals, all at once, or a closed loop of `concurrency` users",
                      kAdvanced,
                      {options::Arrival::poisson, options::Arrival::constant, options::Arrival::burst,
                       options::Arrival::closed}),
           {.confounder = "arrival process"}),
      with(real_row("sweep.burstiness", &options::Sweep::burstiness, "Burstiness", {"", 1, 0.01, 1000},
                    "Shape of the gamma-distributed intervals: 1 is Poisson, smaller values are burstier", kAdvanced),
           {.names = {.vllm = "burstiness"}, .confounder = "burstiness"}),
      with(int_row("sweep.concurrency", &options::Sweep::concurrency, "Concurrency", {"requests", 0, 0, 1000000},
                   "Users of a closed loop; for an open loop, the maximum number in flight (0: no limit)", kAdvanced),
           {.names = {.vllm = "max-concurrency"}}),
      with(choice_row("sweep.lengths", &options::Sweep::lengths, "Lengths",
                      "Request lengths: all equal, uniform within a spread, or as recorded in a file", kAdvanced),
           {.confounder = "distribution of lengths"}),
      with(real_row("sweep.spread", &options::Sweep::spread, "Spread", {"", 0, 0, 1},
                    "Spread of uniform lengths: 0.2 is plus or minus 20 %", kAdvanced),
           {.names = {.vllm = "random-range-ratio"}}),
      path_row("sweep.workload", &options::Sweep::workload, "Workload",
               "Recorded requests: CSV or JSONL with arrival and lengths, or a result", kAdvanced),
      with(int_row("sweep.shared_prefix", &options::Sweep::shared_prefix, "Shared prefix", {"tokens", 0, 0, 1048576},
                   "Length of the prefix that prompts share", kAdvanced),
           {.names = {.vllm = "random-prefix-len"}, .factor = "prefix cache"}),
      with(int_row("sweep.shared_prefixes", &options::Sweep::shared_prefixes, "Different prefixes", {"", 1, 1, 1000000},
                   "Number of different shared prefixes, such as system prompts; each request draws one", kAdvanced),
           {.factor = "prefix cache"}),
      with(int_row("sweep.replicas", &options::Sweep::replicas, "Replicas", {"", 1, 1, 1024},
                   "Simulated servers, each on a target of its own, behind one router", kAdvanced),
           {.search = {.rule = "all that share the document's chips"}, .factor = "replicas"}),
      with(choice_row(
               "sweep.routing", &options::Sweep::routing, "Routing",
               "How the router chooses a replica: in turn, the one with the fewest requests in flight, or one that "
               "holds the prompt's prefix while loads are even",
               kAdvanced),
           {.factor = "replicas"}),
      with(choice_row(
               "sweep.prompts", &options::Sweep::prompts, "Prompts",
               "salted: new random prompts on an empty prefix cache at every rate. replayed: the same prompts at "
               "every rate on a server that keeps its cache, as one vLLM server does with the seed of its benchmark",
               kAdvanced),
           {.factor = "prefix cache", .confounder = "reuse of prompts"}),
      int_row("sweep.repeats", &options::Sweep::repeats, "Repeats", {"", 1, 1, 100},
              "Measurements of every point, each with another seed and on a server of its own", kAdvanced),
      with(int_row("sweep.seed", &options::Sweep::seed, "Seed", {"", 1, 0, kLargestSeed},
                   "Seed of lengths, prompts and random arrivals (those of vllm bench serve --seed)", kAdvanced),
           {.names = {.vllm = "seed"}, .confounder = "seed"}),
      with(real_row("sweep.slo_ttft_ms", member(&options::Sweep::slo, &options::Slo::ttft_ms), "SLO: TTFT",
                    {"ms", 0, 0, 1e9}, "Maximum time to the first token; 0: none", kAdvanced),
           {.readers = Readers{kServing, kTraining | kServing}}),
      with(real_row("sweep.slo_tpot_ms", member(&options::Sweep::slo, &options::Slo::tpot_ms), "SLO: TPOT",
                    {"ms", 0, 0, 1e9}, "Maximum time per token after the first; 0: none", kAdvanced),
           {.readers = Readers{kServing, kTraining | kServing}}),
      with(real_row("sweep.slo_e2e_ms", member(&options::Sweep::slo, &options::Slo::e2e_ms), "SLO: end to end",
                    {"ms", 0, 0, 1e9}, "Maximum end-to-end time of a request; 0: none", kAdvanced),
           {.readers = Readers{kServing, kTraining | kServing}}),
  };
}

Rows measured_rows() {
  return {
      real_row("measured.seconds_per_step", &options::Measured::seconds_per_step, "Seconds per step", {"s", 0, 0, 1e9},
               "Measured time per step to compare the plan with; 0: not measured", kAdvanced),
      real_row("measured.hours", &options::Measured::hours, "Hours", {"h", 0, 0, 1e9},
               "Measured wall time to compare the plan with; 0: not measured", kAdvanced),
      free_list("measured.max_lens", &options::Measured::max_lens, "Possible lengths", "tokens", Json::array(),
                "Candidate sequence lengths of the measured run, if its length is not known"),
      text_row("measured.source", &options::Measured::source, "Source", "", "Source of the measurement", kAdvanced),
  };
}

Rows cost_rows() {
  return {
      real_row(
          "cost.requests_per_day", &options::Cost::requests_per_day, "Requests", {"per day", 0, 0, 1e12},
          "Requests of serve.input_len and serve.output_len that are served by day in the first month, for the total "
          "cost; 0: not asked",
          kAdvanced),
      real_row("cost.growth", &options::Cost::growth, "Growth", {"per month", 0, -0.9, 10},
               "Change of the requests from month to month: 0.1 is 10 % more", kAdvanced),
      int_row("cost.months", &options::Cost::months, "Months", {"months", 12, 1, 120}, "How long the model is served",
              kAdvanced),
      real_row("cost.peak", &options::Cost::peak, "Peak", {"times the mean", 1, 1, 1000},
               "Highest request rate relative to the mean of the day; the servers are sized for it", kAdvanced),
      real_row(
          "cost.preemptions", &options::Cost::preemptions, "Preemptions", {"per day", 0, 0, 1000},
          "How often a machine at the spot price is taken away; each costs a start, and in training the steps since "
          "the last checkpoint",
          kAdvanced),
      choice_row("cost.commitment", &options::Cost::commitment, "Commitment",
                 "Price class of the committed use: one or three years", kAdvanced),
      real_row("cost.variation", &options::Cost::variation, "Variation", {"of an input", 0.25, 0.01, 0.9},
               "How far each input is moved to see what moves the total cost most", kAdvanced),
  };
}

// Used by exported recipes and by the checker.
Rows recipe_rows() {
  return {
      free_list("stack.versions", &options::Recipe::versions, "Versions", "", Json::array(),
                "Package versions for training on the target, as pip freeze prints them: qwix==0.1.8, flax==0.12.5"),
      free_list("stack.model_config", &options::Recipe::model_config, "Model config", "", Json::array(),
                "Fields of Tunix's ModelConfig that the recipe overrides: num_embed=262208"),
      choice_row("stack.add_bos", &options::Recipe::add_bos, "Add <bos>",
                 "Whether the target's tokenizer puts <bos> before the text, independent of the chat template",
                 kAdvanced),
      choice_row(
          "stack.rendering", &options::Recipe::rendering, "Rendering",
          "Training text on the target: the generation prompt and the answer, or the template over the conversation",
          kAdvanced),
  };
}

Rows export_rows() {
  return {
      choice_row("export.merge", &options::Export::merge, "Merge",
                 "Tool that writes merged weights after training: none, Tunix's exporter, or Meshwright", kAdvanced),
      path_row("export.out", &options::Export::out, "Output folder", "Folder for the merged weights", kAdvanced),
      int_row("export.rank", &options::Export::rank, "Exporter rank", {"", 0, 0, 4096},
              "Rank passed to the exporter; 0: the training rank", kAdvanced),
      real_row("export.alpha", &options::Export::alpha, "Exporter alpha", {"", 0, 0, 65536},
               "Alpha passed to the exporter; 0: the training alpha", kAdvanced),
      choice_row("export.serve_as", &options::Export::serve_as, "Served as",
                 "Serve merged weights, or the base model with the adapter", kAdvanced),
  };
}

std::vector<Parameter> build() {
  std::vector<Parameter> table;
  // Rows that do not name their readers have those of the group.
  const auto section = [&table](const char* group, Rows rows, Readers readers = {kEveryKind, kEveryKind}) {
    for (Parameter& p : rows) {
      p.group = group;
      if (!p.columns.readers) p.columns.readers = readers;
      table.push_back(std::move(p));
    }
  };
  section("Experiment", experiment_rows());
  section("Model", model_rows());
  section("Target", target_rows());
  section("Mesh", mesh_rows());
  section("LoRA", lora_rows(), {kTraining | kSizing, kTraining | kSizing});
  section("Data", data_rows(), {kTraining, kTraining});
  section("Training", training_rows(), {kTraining, kTraining});
  section("Budget", budget_rows(), {kTraining, kTraining | kSizing});
  section("Sampling", sampling_rows(), {kTraining, kTraining});
  section("Sizing", sizing_rows(), {kSizing, kSizing});
  section("Serving", serving_rows(), {kServing, kTraining | kServing});
  section("Sweep", sweep_rows(), {kServing, kServing});
  section("Measured", measured_rows(), {kNoKind, kTraining});
  section("Total cost", cost_rows(), {kNoKind, kTraining | kServing});
  section("Recipe", recipe_rows(), {kNoKind, kTraining});
  section("Export", export_rows(), {kNoKind, kTraining | kServing});
  return table;
}

}  // namespace

std::span<const Parameter> parameters() {
  static const std::vector<Parameter> kTable = build();
  return kTable;
}

}  // namespace mw::experiment
