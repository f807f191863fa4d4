// SPDX-License-Identifier: Apache-2.0
#include "core/runs/parameters.h"

#include <algorithm>
#include <numeric>

#include "core/base/units.h"

namespace mw::runs {
namespace {

using enum ParamType;
constexpr auto kAdvanced = Level::advanced;

Parameter text_param(std::string key, std::string group, std::string label, std::string fallback, std::string help,
                     Level level = Level::basic) {
  return {.key = std::move(key),
          .group = std::move(group),
          .label = std::move(label),
          .type = text,
          .fallback = std::move(fallback),
          .help = std::move(help),
          .level = level};
}
Parameter path_param(std::string key, std::string group, std::string label, std::string help,
                     Level level = Level::basic) {
  return {.key = std::move(key),
          .group = std::move(group),
          .label = std::move(label),
          .type = path,
          .fallback = "",
          .help = std::move(help),
          .level = level};
}
Parameter choice_param(std::string key, std::string group, std::string label, std::vector<std::string> choices,
                       std::string help, Level level = Level::basic) {
  Json first = choices.front();
  return {.key = std::move(key),
          .group = std::move(group),
          .label = std::move(label),
          .type = choice,
          .fallback = std::move(first),
          .choices = std::move(choices),
          .help = std::move(help),
          .level = level};
}
Parameter int_param(std::string key, std::string group, std::string label, std::string unit, long long fallback,
                    double min, double max, std::string help, Level level = Level::basic) {
  return {.key = std::move(key),
          .group = std::move(group),
          .label = std::move(label),
          .type = integer,
          .unit = std::move(unit),
          .fallback = fallback,
          .min = min,
          .max = max,
          .help = std::move(help),
          .level = level};
}
Parameter number_param(std::string key, std::string group, std::string label, std::string unit, double fallback,
                       double min, double max, std::string help, Level level = Level::basic) {
  return {.key = std::move(key),
          .group = std::move(group),
          .label = std::move(label),
          .type = number,
          .unit = std::move(unit),
          .fallback = fallback,
          .min = min,
          .max = max,
          .help = std::move(help),
          .level = level};
}

void add_model(std::vector<Parameter>& t) {
  t.push_back(text_param("name", "Experiment", "Name", "", "What the run is called in the Runs table"));
  t.push_back(path_param("model.path", "Model", "Folder",
                         "Hugging Face folder with config.json, safetensors and tokenizer to load"));
  t.push_back(text_param("model.id", "Model", "Catalogue id", "",
                         "A catalogue model such as gemma3-1b, for planning without its files"));
  t.push_back(choice_param("model.init", "Model", "Weights", {"load", "random"},
                           "Load the folder's weights, or start from random ones (pretraining)", kAdvanced));
  t.push_back(path_param("model.tokenizer", "Model", "Tokenizer",
                         "tokenizer.json or SentencePiece .model, where it is not in the model's folder", kAdvanced));
  t.push_back(text_param("target.id", "Target", "Target", "cpu", "Where it runs: cpu is this machine"));
  t.push_back(int_param("target.threads", "Target", "Threads", "threads", 0, 0, 1024,
                        "Cores the engine uses; 0 is all of them", kAdvanced));
  t.push_back(number_param("target.memory_gib", "Target", "Memory limit", "GiB", 0, 0, 65536,
                           "Capacity of the device's arena; 0 is this machine's memory", kAdvanced));
  t.push_back(int_param("mesh.*", "Mesh", "Axis size", "devices", 1, 1, 65536,
                        "Devices along this mesh axis (fsdp, tp, data)", kAdvanced));
}

void add_lora(std::vector<Parameter>& t) {
  t.push_back(int_param("lora.rank", "LoRA", "Rank", "", 16, 1, 4096,
                        "Inner dimension r of every adapter: A is [r, in], B is [out, r]"));
  t.push_back(
      number_param("lora.alpha", "LoRA", "Alpha", "", 16, 0, 65536, "The adapter's output is scaled by alpha / rank"));
  t.push_back(number_param("lora.dropout", "LoRA", "Dropout", "", 0, 0, 0.99,
                           "Probability of zeroing an input of the adapter while training"));
  t.push_back({.key = "lora.targets",
               .group = "LoRA",
               .label = "Targets",
               .type = list,
               .fallback = Json::array({"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}),
               .choices = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"},
               .help = "Projections that get an adapter"});
  t.push_back({.key = "lora.rslora",
               .group = "LoRA",
               .label = "Rank-stabilised scaling",
               .type = flag,
               .fallback = false,
               .help = "Scale by alpha / sqrt(rank) instead of alpha / rank",
               .level = kAdvanced});
  t.push_back({.key = "lora.rank_pattern",
               .group = "LoRA",
               .label = "Rank per module",
               .type = map,
               .fallback = Json::object(),
               .help = "Regex of module path to rank, as PEFT's rank_pattern",
               .level = kAdvanced});
  t.push_back({.key = "lora.alpha_pattern",
               .group = "LoRA",
               .label = "Alpha per module",
               .type = map,
               .fallback = Json::object(),
               .help = "Regex of module path to alpha, as PEFT's alpha_pattern",
               .level = kAdvanced});
  t.push_back(path_param("lora.adapter", "LoRA", "Start from",
                         "PEFT adapter folder to load before training or generating", kAdvanced));
}

void add_data(std::vector<Parameter>& t) {
  t.push_back(path_param("data.path", "Data", "File", "JSONL, JSON or plain text file with the training examples"));
  t.push_back(choice_param("data.format", "Data", "Format",
                           {"auto", "prompt_completion", "messages", "sharegpt", "alpaca", "text"},
                           "How a row is read; auto looks at the file's ending and first row"));
  for (const char* column : {"prompt", "completion", "text", "messages", "system", "input"})
    t.push_back(text_param(
        std::string("data.columns.") + column, "Data", std::string("Column: ") + column, "",
        std::string("Name of the column that holds the ") + column + ", where it is not the usual one", kAdvanced));
  t.push_back(int_param("data.max_len", "Data", "Longest row", "tokens", 512, 4, 1048576,
                        "Rows longer than this are dropped or truncated; packed rows are filled up to it"));
  t.push_back({.key = "data.packing",
               .group = "Data",
               .label = "Packing",
               .type = flag,
               .fallback = false,
               .help = "Put several short examples into one row, attention and positions kept apart"});
  t.push_back(choice_param("data.loss", "Data", "Loss on", {"completion", "assistant", "all"},
                           "Which tokens carry loss: the last answer, every assistant turn, or everything"));
  t.push_back(choice_param("data.overlong", "Data", "Overlong rows", {"drop", "truncate"},
                           "What happens to rows longer than the limit (both are counted)"));
  t.push_back(choice_param("data.on_error", "Data", "Bad rows", {"stop", "skip"},
                           "Stop at the first malformed row, or skip and count it", kAdvanced));
  t.push_back(choice_param("data.chat", "Data", "Chat template", {"auto", "gemma2", "gemma3", "gemma4", "none"},
                           "How prompts and answers are rendered; auto follows the model's family", kAdvanced));
  t.push_back(number_param("data.eval_fraction", "Data", "Held out", "of rows", 0.05, 0, 0.9,
                           "Share of the rows kept for evaluation, chosen by seed and row"));
}

void add_train(std::vector<Parameter>& t) {
  t.push_back(choice_param("train.method", "Training", "Method", {"lora", "full"},
                           "Train LoRA adapters on the frozen model, or every weight"));
  t.push_back(int_param("train.steps", "Training", "Steps", "steps", 200, 1, 100000000, "Optimizer steps"));
  t.push_back(int_param("train.batch", "Training", "Batch", "rows", 8, 1, 65536,
                        "Rows of one forward and backward (micro-batch)"));
  t.push_back(int_param("train.accumulation", "Training", "Accumulation", "micro-batches", 1, 1, 65536,
                        "Micro-batches whose gradients make one optimizer step"));
  t.push_back(
      number_param("train.learning_rate", "Training", "Learning rate", "", 2e-4, 0, 10, "Peak learning rate of AdamW"));
  t.push_back(choice_param("train.schedule", "Training", "Schedule", {"cosine", "linear", "constant"},
                           "How the learning rate falls after warm-up"));
  t.push_back(int_param("train.warmup_steps", "Training", "Warm-up", "steps", 10, 0, 100000000,
                        "Steps over which the learning rate rises from zero"));
  t.push_back(number_param("train.final_ratio", "Training", "Final ratio", "of peak", 0, 0, 1,
                           "Where the schedule ends, as a share of the peak rate", kAdvanced));
  t.push_back(number_param("train.weight_decay", "Training", "Weight decay", "", 0, 0, 10,
                           "Decoupled weight decay of AdamW (not on norms)", kAdvanced));
  t.push_back(number_param("train.beta1", "Training", "Beta 1", "", 0.9, 0, 0.99999, "Decay of AdamW's first moment",
                           kAdvanced));
  t.push_back(number_param("train.beta2", "Training", "Beta 2", "", 0.999, 0, 0.999999,
                           "Decay of AdamW's second moment", kAdvanced));
  t.push_back(number_param("train.epsilon", "Training", "Epsilon", "", 1e-8, 0, 1,
                           "Added to the root of AdamW's second moment", kAdvanced));
  t.push_back(number_param("train.clip", "Training", "Gradient clipping", "", 1, 0, 1e9,
                           "Largest global gradient norm; 0 turns clipping off", kAdvanced));
  t.push_back(choice_param("train.remat", "Training", "Remat", {"none", "block", "layer"},
                           "Activations recomputed in the backward pass: none, inside blocks, or whole layers"));
  t.push_back(int_param("train.loss_chunk", "Training", "Loss chunk", "rows", 256, 0, 1048576,
                        "Rows of logits alive at once in the cross-entropy; 0 is all of them"));
  t.push_back(choice_param("train.dtype", "Training", "Weights", {"f32", "bf16"},
                           "Type the weights are held in; sums are always f32"));
  t.push_back(choice_param("train.save_dtype", "Training", "Saved as", {"bf16", "f32"},
                           "Type of the model file that full training writes", kAdvanced));
  t.push_back(
      int_param("train.seed", "Training", "Seed", "", 1, 0, 9007199254740991.0, "Everything random follows from it"));
  t.push_back(int_param("train.eval_every", "Training", "Evaluate every", "steps", 50, 0, 100000000,
                        "0: only before and after", kAdvanced));
  t.push_back(int_param("train.eval_rows", "Training", "Evaluation rows", "rows", 64, 0, 100000000,
                        "Most held-out rows used for one eval/loss", kAdvanced));
  t.push_back(int_param("train.sample_every", "Training", "Sample every", "steps", 50, 0, 100000000,
                        "Answers to fixed held-out prompts while training; 0: none", kAdvanced));
  t.push_back(int_param("train.sample_prompts", "Training", "Sample prompts", "prompts", 3, 0, 64,
                        "How many held-out prompts are answered each time", kAdvanced));
  t.push_back(int_param("train.answers", "Training", "Scored answers", "prompts", 0, 0, 10000,
                        "Held-out prompts answered by the base and by the tuned model and counted as right or wrong",
                        kAdvanced));
  t.push_back(int_param("train.checkpoint_every", "Training", "Checkpoint every", "steps", 100, 0, 100000000,
                        "0: only at the end", kAdvanced));
  t.push_back(int_param("train.keep_checkpoints", "Training", "Checkpoints kept", "", 2, 1, 1000,
                        "Older ones are removed", kAdvanced));
}

void add_sample(std::vector<Parameter>& t) {
  t.push_back(int_param("sample.max_new_tokens", "Sampling", "Longest answer", "tokens", 48, 1, 1048576,
                        "Generation stops here at the latest", kAdvanced));
  t.push_back(number_param("sample.temperature", "Sampling", "Temperature", "", 0, 0, 10, "0 is greedy", kAdvanced));
  t.push_back(int_param("sample.top_k", "Sampling", "Top-k", "tokens", 0, 0, 1048576,
                        "Sample among the k likeliest; 0 is off", kAdvanced));
  t.push_back(number_param("sample.top_p", "Sampling", "Top-p", "", 1, 0.0001, 1,
                           "Sample among the likeliest that sum to p; 1 is off", kAdvanced));
  t.push_back(
      int_param("sample.seed", "Sampling", "Seed", "", 1, 0, 9007199254740991.0, "Seed of sampled text", kAdvanced));
}

std::vector<Parameter> build() {
  std::vector<Parameter> table;
  add_model(table);
  add_lora(table);
  add_data(table);
  add_train(table);
  add_sample(table);
  return table;
}

const std::vector<Parameter>& table() {
  static const std::vector<Parameter> kTable = build();
  return kTable;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::span<const Parameter> parameters() {
  return table();
}

const Parameter* find_parameter(std::string_view key) {
  for (const Parameter& p : table()) {
    if (p.key == key) return &p;
    if (!p.key.ends_with(".*")) continue;
    const std::string_view stem = std::string_view(p.key).substr(0, p.key.size() - 1);
    if (key.starts_with(stem) && key.size() > stem.size() && key.find('.', stem.size()) == std::string_view::npos)
      return &p;
  }
  return nullptr;
}

std::string nearest_key(std::string_view key) {
  const auto& all = table();
  const auto best = std::min_element(all.begin(), all.end(), [&](const Parameter& a, const Parameter& b) {
    return edit_distance(a.key, key) < edit_distance(b.key, key);
  });
  return best->key;
}

std::string range_text(const Parameter& p) {
  const std::string unit = p.unit.empty() ? "" : " " + p.unit;
  const auto joined = [&] {
    std::string all;
    for (const auto& c : p.choices) all += (all.empty() ? "" : ", ") + c;
    return all;
  };
  switch (p.type) {
    case integer:
    case number:
      return number_text(p.min.value_or(0), 16) + " to " + number_text(p.max.value_or(0), 16) + unit;
    case choice:
      return "one of " + joined();
    case list:
      return p.choices.empty() ? "a list" : "a list of " + joined();
    case flag:
      return "true or false";
    case path:
      return "a path";
    case map:
      return "an object of pattern to number";
    case text:
      return "text";
  }
  return {};
}

}  // namespace mw::runs
