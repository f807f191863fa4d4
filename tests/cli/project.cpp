// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/cli/project.h"

#include <sstream>

#include "core/base/files.h"
#include "core/data/tokenizer/tokenizer.h"

namespace mw::test {
namespace fs = std::filesystem;

Project::Project() {
  model = folder / "model";
  data = folder / "rows.jsonl";
  experiment = folder / "experiment.json";
  runs = folder / "runs";
  fs::create_directories(model);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    fs::copy_file(fs::path(MW_RESOURCES) / "base-model" / name, model / name);
  const int pieces = data::load_tokenizer(model)->size();
  const Json config{{"architectures", {"Gemma3ForCausalLM"}},
                    {"model_type", "gemma3_text"},
                    {"vocab_size", pieces},
                    {"hidden_size", 48},
                    {"intermediate_size", 96},
                    {"num_hidden_layers", 3},
                    {"num_attention_heads", 4},
                    {"num_key_value_heads", 2},
                    {"head_dim", 16},
                    {"query_pre_attn_scalar", 16},
                    {"sliding_window", 32},
                    {"max_position_embeddings", 256},
                    {"layer_types", {"sliding_attention", "sliding_attention", "full_attention"}},
                    {"rms_norm_eps", 1e-6},
                    {"rope_parameters",
                     {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 1000000.0}}},
                      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 10000.0}}}}},
                    {"hidden_activation", "gelu_pytorch_tanh"},
                    {"tie_word_embeddings", true}};
  write_file_atomically(model / "config.json", config.dump(2));
  std::string rows;
  const char* things[]{"ball", "dog", "house", "tree", "boat"};
  const char* colours[]{"red", "blue", "green", "white"};
  for (int i = 0; i < 60; ++i) {
    const Json row{
        {"prompt", std::string("Which colour has the ") + things[i % 5] + " number " + std::to_string(i) + "?"},
        {"completion", colours[i % 4]}};
    rows += row.dump() + "\n";
  }
  write_file_atomically(data, rows);
  write_experiment(Json::object());
}

Project::~Project() {
  std::error_code ec;
  fs::permissions(folder, fs::perms::owner_all, ec);  // a test may have removed the permissions
}

void Project::write_experiment(const Json& changes) const {
  Json e = parse_json(R"({"schema": 1,
    "model": {"path": "model", "init": "random"},
    "lora": {"rank": 4, "alpha": 8, "dropout": 0.1},
    "data": {"path": "rows.jsonl", "max_len": 64, "eval_fraction": 0.1},
    "train": {"steps": 20, "batch": 4, "accumulation": 2, "learning_rate": 0.01, "warmup_steps": 2, "checkpoint_every": 5,
              "eval_every": 8, "sample_every": 0, "seed": 7}})",
                      "project");
  e.merge_patch(changes);
  write_file_atomically(experiment, e.dump(2));
}

std::vector<std::string> Project::command(const std::string& name, std::vector<std::string> more) const {
  std::vector<std::string> all{name, experiment.string(), "--runs-dir", runs.string(), "--json"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<Json> lines(const std::string& out) {
  std::vector<Json> all;
  std::istringstream stream(out);
  for (std::string line; std::getline(stream, line);) all.push_back(parse_json(line, "standard output"));
  return all;
}

std::vector<double> metric(const std::vector<Json>& events, const std::string& name) {
  std::vector<double> values;
  for (const Json& e : events)
    if (e.value("event", "") == "metric" && e.value("name", "") == name) values.push_back(e.at("value").get<double>());
  return values;
}

std::string bytes_of(const fs::path& file) {
  return read_file(file);
}

}  // namespace mw::test
