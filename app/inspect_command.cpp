// SPDX-License-Identifier: GPL-3.0-or-later
// `inspect`: reports the contents of a file or folder of any format that Meshwright reads.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/data/dataset/data_file.h"
#include "core/data/dataset/dataset.h"
#include "core/engine/kernels/cpu.h"
#include "core/engine/kernels/kernel_choice.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/logs/run_log.h"
#include "core/formats/orbax/orbax.h"
#include "core/formats/results/bench_import.h"
#include "core/import/bundle.h"
#include "core/train/model.h"
#include "core/train/settings.h"

namespace mw::app {
namespace fs = std::filesystem;
namespace {

Json tensors_json(const formats::SafetensorsFile& file) {
  Json all = Json::array();
  for (const formats::TensorInfo& t : file.tensors())
    all.push_back({{"name", t.name}, {"dtype", t.dtype_name}, {"shape", t.shape}});
  return all;
}

Json inspect_adapter(const fs::path& folder) {
  const Json config = read_json(folder / "adapter_config.json");
  const formats::SafetensorsFile file(folder / "adapter_model.safetensors");
  std::int64_t parameters = 0;
  for (const auto& t : file.tensors()) parameters += t.elements();
  return {{"kind", "adapter"},
          {"path", folder.string()},
          {"rank", config.value("r", Json())},
          {"alpha", config.value("lora_alpha", Json())},
          {"targets", config.value("target_modules", Json())},
          {"base_model", config.value("base_model_name_or_path", Json())},
          {"parameters", parameters},
          {"tensors", tensors_json(file)}};
}

// The matrix product kernels that this machine uses for each weight type.
Json engine_json() {
  const auto kernels = [](model::WeightType type) { return describe_kernels(type, engine::best_arithmetic(type)); };
  return {{"cpu", to_string(engine::usable_cpu())},
          {"f32", kernels(model::WeightType::f32)},
          {"bf16", kernels(model::WeightType::bf16)},
          {"int8", kernels(model::WeightType::int8)},
          {"choice", engine::describe_choice()}};
}

// `path` is a model folder or its config.json.
Json inspect_checkpoint(const fs::path& path) {
  const model::Config config = formats::read_config(path);
  const fs::path folder = is_folder(path) ? path : fs::absolute(path).parent_path();
  const model::TensorInventory inventory(config);
  Json out{{"kind", "checkpoint"},
           {"path", path.string()},
           {"architecture", config.hf_architecture},
           {"model_type", config.hf_model_type},
           {"parameters", inventory.parameters()},
           {"layers", config.layers.size()},
           {"dim", config.dim},
           {"vocab", config.vocab},
           {"sliding_window", config.sliding_window},
           {"tensors", inventory.tensors().size()},
           {"planning_only", model::is_planning_only(config)}};
  if (!model::is_planning_only(config)) out["engine"] = engine_json();
  bool weights = false;
  for (const auto& entry : fs::directory_iterator(folder))
    weights = weights || entry.path().extension() == ".safetensors";
  out["weights"] = weights ? "present" : "absent";
  if (weights) out["skipped"] = formats::HfWeights(folder, inventory).skipped().size();
  const bool tokenizer = path_exists(folder / "tokenizer.json") || path_exists(folder / "tokenizer.model");
  if (tokenizer && !model::is_planning_only(config))  // tokenizers of other models may have an unsupported format
    out["tokenizer_pieces"] = data::load_tokenizer(folder)->size();
  return out;
}

Json inspect_experiment(const fs::path& file) {
  const experiment::Experiment e = experiment::Experiment::load(file);
  Json problems = Json::array();
  for (const Problem& p : e.validate())
    problems.push_back({{"severity", to_string(p.severity)}, {"message", to_text(p)}});
  return {{"kind", "experiment"}, {"path", file.string()}, {"problems", problems}, {"document", e.json()}};
}

// Rows from 1, those of the evaluation file after those for training.
Json pairs_json(const std::vector<data::RowPair>& pairs) {
  Json out = Json::array();
  for (const data::RowPair& pair : pairs) out.push_back({{"row", pair.row + 1}, {"same_as", pair.same_as + 1}});
  return out;
}

// Lengths are in bytes: without a tokenizer, every byte counts as one token.
Json inspect_dataset(const fs::path& file, const fs::path& held_out, std::stop_token stop) {
  class ByteTokenizer : public data::Tokenizer {
   public:
    std::vector<int> encode(std::string_view text) const override {
      std::vector<int> ids(text.size());
      std::transform(text.begin(), text.end(), ids.begin(), [](char c) { return 3 + static_cast<unsigned char>(c); });
      return ids;
    }
    std::string decode(std::span<const int> ids, data::Specials) const override {
      std::string text;
      for (const int id : ids)
        if (id >= 3) text += static_cast<char>(id - 3);
      return text;
    }
    int size() const override { return 259; }
    std::string piece(int id) const override { return std::to_string(id); }
    int find(std::string_view) const override { return -1; }
  } bytes;
  data::DatasetOptions options;
  options.path = file;
  options.eval_path = held_out;
  options.chat = options::ChatFormat::none;
  options.on_error = options::OnError::skip;
  options.max_len = 1 << 20;
  const data::DatasetSummary summary = data::summarize_dataset(options, bytes, stop);
  const auto& r = summary.report;
  Json problems = Json::array();
  for (const Problem& p : r.problems) problems.push_back(to_text(p));
  const Json first{{"prompt", summary.prompt.substr(0, 400)}, {"answer", summary.answer.substr(0, 400)}};
  Json out{{"kind", "dataset"},
           {"path", file.string()},
           {"format", to_string(r.format)},
           {"rows", r.rows},
           {"usable", r.kept},
           {"malformed", r.skipped_bad},
           {"bytes", r.tokens},
           {"bytes_with_loss", r.loss_tokens},
           {"first", first},
           {"repeated", summary.overlap.repeated},
           {"repeats", pairs_json(summary.overlap.repeats)},
           {"problems", problems}};
  if (summary.overlap.uncompared > 0) out["uncompared"] = summary.overlap.uncompared;
  if (held_out.empty()) return out;
  out["evaluation"] = {{"path", held_out.string()},
                       {"rows", summary.overlap.held_out},
                       {"in_training", summary.overlap.held_out_in_train},
                       {"rows_in_training", pairs_json(summary.overlap.leaks)},
                       {"prompts_in_training", summary.overlap.held_out_prompts_in_train},
                       {"rows_with_prompts_in_training", pairs_json(summary.overlap.prompt_leaks)}};
  return out;
}

Json array_json(const formats::ZarrArray& a, const std::string& item) {
  Json out{{"name", item.empty() ? a.name : item + "/" + a.name},
           {"dtype", a.dtype_name},
           {"shape", a.shape},
           {"bytes", a.elements() * static_cast<std::int64_t>(formats::size_of(a.dtype))},
           {"zarr", a.version},
           {"chunk", a.chunk}};
  if (a.sharded) out["inner_chunk"] = a.inner;
  out["packed"] = a.zstd ? "zstd" : "no";
  return out;
}

Json inspect_orbax(const fs::path& folder) {
  const formats::OrbaxFolder found = formats::open_orbax(folder);
  Json steps = Json::array(), items = Json::array(), tensors = Json::array();
  for (const formats::OrbaxStep& step : found.steps) {
    Json names = Json::array();
    for (const formats::OrbaxItem& item : step.items) names.push_back(item.name);
    steps.push_back(
        {{"step", step.step < 0 ? Json() : Json(step.step)}, {"folder", step.folder.string()}, {"items", names}});
  }
  std::int64_t parameters = 0, bytes = 0;
  for (const formats::OrbaxItem& item : found.steps.back().items) {
    const formats::OrbaxTree tree(item.folder);
    items.push_back({{"name", item.name},
                     {"layout", tree.in_database() ? "OCDBT" : "a folder an array"},
                     {"arrays", tree.arrays().size()}});
    for (const formats::ZarrArray& a : tree.arrays()) {
      tensors.push_back(array_json(a, item.name));
      parameters += a.elements();
      bytes += tensors.back()["bytes"].get<std::int64_t>();
    }
  }
  const long step = found.steps.back().step;
  return {{"kind", "orbax"},
          {"path", folder.string()},
          {"step", step < 0 ? Json() : Json(step)},
          {"steps", steps},
          {"unfinished", found.unfinished},
          {"items", items},
          {"parameters", parameters},
          {"bytes", bytes},
          {"tensors", tensors}};
}

Json inspect_log(const fs::path& path) {
  const formats::RunLog log = formats::read_log(path);
  Json series = Json::array();
  long last_step = 0;
  for (const formats::LogSeries& s : formats::summarize_series(log)) {
    Json one{{"name", s.name}, {"points", s.points}, {"first_step", s.first_step}, {"last_step", s.last_step}};
    if (s.finite > 0) one.update({{"last", s.last}, {"least", s.least}, {"most", s.most}});
    series.push_back(one);
    last_step = std::max(last_step, s.last_step);
  }
  return {{"kind", "log"},
          {"path", path.string()},
          {"tool", log.tool},
          {"name", log.name},
          {"finished", log.finished},
          {"steps", last_step},
          {"steps_total", log.steps_total == 0 ? Json() : Json(log.steps_total)},
          {"seconds", log.seconds == 0 ? Json() : Json(log.seconds)},
          {"facts", log.facts},
          {"notes", log.notes},
          {"contents", log.contents},
          {"series", series}};
}

// The tool that wrote the results, and its measurements.
Json inspect_result(const fs::path& file, formats::BenchKind kind) {
  Json sets = Json::array();
  for (const formats::BenchSet& set : formats::read_bench(file)) sets.push_back(to_json(set, formats::Detail::summary));
  return {{"kind", "result"}, {"path", file.string()}, {"tool", to_string(kind)}, {"sets", sets}};
}

// Reads and checks all of it, as import does.
Json inspect_bundle(const fs::path& file) {
  const importing::BundleContents contents = importing::check_bundle(file);
  Json runs = Json::array();
  for (size_t i = 0; i < contents.names.size(); ++i)
    runs.push_back({{"name", contents.names[i]}, {"events", contents.events_of[i]}});
  return {{"kind", "bundle"},
          {"path", file.string()},
          {"runs", runs},
          {"checkpoint_files", contents.files},
          {"checkpoint_bytes", contents.bytes}};
}

bool is_model_config(const Json& j) {
  return j.is_object() && j.contains("model_type") && (j.contains("hidden_size") || j.contains("text_config"));
}

bool is_experiment(const Json& j) {
  if (!j.is_object()) return false;
  for (const char* section : {"schema", "model", "train", "mesh", "lora"})
    if (j.contains(section) && !j.contains("architectures") && !j.contains("added_tokens")) return true;
  return false;
}

Json inspect_folder(const fs::path& path) {
  if (path_exists(path / "adapter_config.json")) return inspect_adapter(path);
  if (path_exists(path / "config.json")) return inspect_checkpoint(path);
  if (formats::is_orbax(path)) return inspect_orbax(path);
  if (formats::log_kind(path) != formats::LogKind::none) return inspect_log(path);
  throw Error(
      "INSPECT", "the folder has no known contents",
      {.file = path.string(),
       .expected =
           "config.json of a model, adapter_config.json of an adapter, an Orbax checkpoint or logs of a training run"});
}

Json inspect_path(const fs::path& path, const fs::path& held_out, std::stop_token stop) {
  if (!held_out.empty()) return inspect_dataset(path, held_out, stop);
  if (is_folder(path)) return inspect_folder(path);
  if (data::is_pattern(path)) return inspect_dataset(path, {}, stop);
  if (importing::is_bundle(path)) return inspect_bundle(path);
  if (path.extension() == ".safetensors") {
    const formats::SafetensorsFile file(path);
    return {{"kind", "safetensors"},
            {"path", path.string()},
            {"metadata", file.metadata()},
            {"tensors", tensors_json(file)}};
  }
  if (path.filename() == "tokenizer.json" || path.extension() == ".model") {
    const auto tokenizer = data::load_tokenizer(path);
    return {{"kind", "tokenizer"},     {"path", path.string()},   {"pieces", tokenizer->size()},
            {"bos", tokenizer->bos()}, {"eos", tokenizer->eos()}, {"pad", tokenizer->pad()}};
  }
  if (formats::log_kind(path) != formats::LogKind::none) return inspect_log(path);
  if (const formats::BenchKind kind = formats::bench_kind(path); kind != formats::BenchKind::none)
    return inspect_result(path, kind);
  if (path.extension() == ".json") {
    const Json json = read_json(path);
    if (json.is_object() && json.contains("peft_type"))
      throw Error("INSPECT", "this is a PEFT configuration; inspect its folder",
                  {.file = path.string(), .fix = "meshwright inspect " + fs::absolute(path).parent_path().string()});
    if (is_model_config(json)) return inspect_checkpoint(path);
    if (is_experiment(json)) return inspect_experiment(path);
  }
  return inspect_dataset(path, {}, stop);
}

void print_tensor(const Json& tensor) {
  print_text("  %s %-5s %s\n", padded(tensor["name"].get<std::string>(), -60).c_str(),
             tensor["dtype"].get<std::string>().c_str(), tensor["shape"].dump().c_str());
}

void print_series(const Json& series) {
  print_text("  %s %6lld values, steps %lld to %lld%s\n", padded(series["name"].get<std::string>(), -40).c_str(),
             series["points"].get<long long>(), series["first_step"].get<long long>(),
             series["last_step"].get<long long>(),
             series.contains("last") ? (", last " + number_text(series["last"].get<double>())).c_str() : "");
}

void print_inspected(const Json& inspected) {
  for (const auto& [key, value] : inspected.items()) {
    const bool tensors =
        value.is_array() && !value.empty() && value.front().is_object() && value.front().contains("shape");
    if (tensors)
      for (const Json& tensor : value) print_tensor(tensor);
    else if (key == "series")
      for (const Json& series : value) print_series(series);
    else
      print_text("%s: %s\n", key.c_str(), value.is_string() ? value.get<std::string>().c_str() : value.dump(2).c_str());
  }
}

struct InspectOptions {
  fs::path eval{};
};

void add_inspect_options(CLI::App& command, CommonOptions& common, InspectOptions& options) {
  add_file_and_set_options(command, common, "File or folder");
  command.add_option("--eval", options.eval, "Evaluation rows of the dataset: counts those that training sees");
}

int run_inspect(const CommonOptions& common, const InspectOptions& options) {
  const Json inspected = inspect_path(common.file, options.eval, common.stop);
  if (common.output == Output::json)
    print_json(inspected);
  else
    print_inspected(inspected);
  return 0;
}

}  // namespace

Subcommand inspect_subcommand() {
  return make_subcommand("inspect",
                         "Show what a checkpoint, adapter, dataset, tokenizer, result, log or experiment contains",
                         add_inspect_options, run_inspect);
}

}  // namespace mw::app
