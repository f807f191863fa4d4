// SPDX-License-Identifier: GPL-3.0-or-later
// Readers of Meshwright's own files: experiments, rows of hardware and measurements, recordings, checkpoints, event
// lines, kept choices of kernels.
#include <algorithm>
#include <cstdlib>

#include "core/base/error.h"
#include "core/compare/recording.h"
#include "core/engine/kernels/kernel_choice.h"
#include "core/experiment/experiment.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/hardware/catalogue.h"
#include "core/import/bundle.h"
#include "core/import/follow.h"
#include "core/import/import_files.h"
#include "core/import/tar.h"
#include "core/plan/calibration/calibration_file.h"
#include "core/plan/calibration/measurements.h"
#include "core/train/checkpoint.h"
#include "core/train/settings.h"
#include "tests/readers/reader.h"
#include "tests/shipped.h"

namespace mw::readers {
namespace {

namespace fs = std::filesystem;
using namespace compare;
using namespace experiment;
using namespace importing;
using Texts = std::vector<std::string>;

void experiment(std::string_view bytes) {
  static const Scratch scratch;
  const Experiment e = Experiment::load(scratch.put("experiment.json", bytes));
  for (const Problem& p : e.validate()) to_text(p);
  if (Experiment::from_json(Json::parse(e.text())) != e) std::abort();
  train::plan_settings(e.config(), model::Family::gemma3);
}
Texts experiment_seeds() {
  Texts seeds;
  for (const char* name :
       {"tiny-lora", "tiny-mesh", "tiny-serve", "paper-train-v5p-8", "paper-serve-v6e-8", "gemma3-1b-sizing-v5e"})
    seeds.push_back(resource(std::string("examples/") + name + ".json"));
  return seeds;
}

// "key=value", as for --set.
void sets(std::string_view bytes) {
  Experiment e;
  apply_sets(e, {std::string(bytes)});
  e.validate();
}
Texts sets_seeds() {
  return {"lora.rank=32", "mesh={\"fsdp\":2,\"tp\":4}", "lora.targets=[\"q_proj\"]", "train.learning_rate=1e-4",
          "sweep.rates=[1,2]"};
}

void event_line(std::string_view bytes) {
  if (const auto event = event_of_line(std::string(bytes))) event_from_json(to_json(*event, "run-1"));
}
Texts event_line_seeds() {
  return {
      R"({"event":"metric","name":"train/loss","step":3,"value":2.5,"time_s":1.5})",
      R"({"event":"started","info":{"model":"x","steps":10},"run":"run-1","extra":[1]})",
      R"({"event":"memory","device":0,"step":1,"phase":"forward","bytes":{"weights":100,"total":100},"peak":100})",
      R"({"event":"traffic","step":1,"entries":[{"kind":"all-gather","axis":"tp","calls":3,"bytes":8,"planned":8}],)"
      R"("devices":[{"bytes":8,"seconds":0.5}]})",
      R"({"event":"sample","step":1,"prompt":"a","text":"b"})",
      R"({"event":"checkpoint","step":1,"path":"x"})",
      R"({"event":"log","level":"info","text":"x"})",
      R"({"event":"progress","phase":"x","done":1,"total":2})",
      R"({"event":"state","state":"paused"})",
      R"({"event":"point","step":1,"kind":"size","values":{}})",
      R"({"event":"finished","state":"done","steps":10,"tokens":100,"seconds":5,"peak_bytes":7,"error":""})"};
}

// All lines of a run, as printed by a program.
void event_record(std::string_view bytes) {
  static const Scratch scratch;
  const fs::path file = scratch.put("events.jsonl", bytes);
  is_event_lines(file);
  for (const Event& event : read_event_lines(file).events) to_json(event, "run-1").dump();
}
Texts event_record_seeds() {
  return {R"({"event":"started","time_s":0,"info":{"name":"a","software":"TRL","experiment":{"schema":1,"name":"x"}}})"
          "\n"
          R"({"event":"metric","time_s":1,"step":1,"name":"train/loss","value":2.5})"
          "\nnot an event\n"
          R"({"event":"finished","time_s":2,"state":"done","steps":1,"tokens":1,"seconds":2,"peak_bytes":7,"error":""})"
          "\n",
          R"({"event":"metric","step":1,"name":"train/loss","value":2.5})"};
}

void measurements(std::string_view bytes) {
  static const Scratch scratch;
  plan::read_measurements(scratch.put("measurements.json", bytes), test::context().catalogue, plan::BadRows::collected);
}
// The shipped file reduced to one row, of training or serving.
Texts measurements_seeds() {
  const Json shipped = Json::parse(resource("hardware/measurements.json"));
  Texts seeds;
  const Json& rows = shipped.contains("rows") ? shipped["rows"] : shipped["measurements"];
  for (size_t i = 0; i < rows.size(); i += 1 + rows.size() / 8) {
    Json one = shipped;
    one[shipped.contains("rows") ? "rows" : "measurements"] = Json::array({rows[i]});
    one.erase("configs");
    one.erase("left_out");
    seeds.push_back(one.dump());
  }
  return seeds;
}

// Also the rates of a machine, and plans with them.
void calibration(std::string_view bytes) {
  static const Scratch scratch;
  if (bytes.find("machines") != std::string_view::npos) {
    scratch.put("machine.json", bytes);
    for (const plan::MachineRates& rates : plan::own_measurements(scratch.path()).rates)
      for (const plan::Work work : {plan::Work::train, plan::Work::serve}) {
        plan::Request r;
        r.target = test::context().catalogue.target("cpu");
        r.work = work;
        plan::set_stack(r, model::Stack::engine);
        plan::apply({.rates = &rates, .costs = test::context().processors().costs}, 1, r);
        plan::to_json(rates).dump();
      }
    return;
  }
  plan::to_json(plan::read_calibration(scratch.put("calibration.json", bytes))).dump();
}
Texts calibration_seeds() {
  Json shipped = Json::parse(resource("hardware/calibration.json"));
  Json first = Json::array();
  for (const Json& factor : shipped["factors"])
    if (first.size() < 3) first.push_back(factor);
  const Json machines = Json::array({plan::to_json(test::context().processors().rates.front())});
  return {Json{{"schema", 1}, {"date", "2026"}, {"source", "x"}, {"by", "you"}, {"factors", first}}.dump(),
          Json{{"schema", 1}, {"machines", machines}}.dump()};
}

// The shipped file reduced to the rows of this chip.
std::string rows_of(const char* file, const char* list, const char* key, const char* chip) {
  Json json = Json::parse(resource(std::string("hardware/") + file + ".json"));
  Json rows = Json::array();
  for (const Json& row : json[list])
    if (row[key] == chip && rows.size() < 2) rows.push_back(row);
  json[list] = rows;
  return json.dump();
}
const Texts& small_hardware() {
  static const Texts kFiles{rows_of("chips", "chips", "id", "v5e"), rows_of("slices", "families", "chip", "v5e"),
                            rows_of("prices", "prices", "chip", "v5e")};
  return kFiles;
}

// A user's file in addition to the shipped ones.
void hardware_rows(std::string_view bytes) {
  static const Scratch own;
  static const char* const kFiles[] = {"chips.json", "slices.json", "prices.json"};
  static const hardware::Catalogue kShipped = [] {
    const Scratch shipped;
    for (size_t i = 0; i < std::size(kFiles); ++i) shipped.put(kFiles[i], small_hardware()[i]);
    return hardware::Catalogue::load(shipped.path());
  }();
  const auto [which, rest] = choose(bytes, std::size(kFiles));
  const fs::path file = own.put(kFiles[which], rest);
  hardware::Catalogue all = kShipped;
  all.add(own.path());
  for (const Problem& p : all.problems()) to_text(p);
  const Texts ids = all.target_ids();
  for (size_t i = 0; i < ids.size(); i += 1 + ids.size() / 4) all.target(ids[i]);
  fs::remove(file);
}
Texts hardware_seeds() {
  Texts seeds;
  for (size_t i = 0; i < small_hardware().size(); ++i) seeds.push_back(std::to_string(i) + small_hardware()[i]);
  return seeds;
}

void recording(std::string_view bytes) {
  static const Scratch scratch;
  const auto [which, rest] = choose(bytes, 2);
  const Recording r = recording_of(scratch.put(which == 0 ? "results.json" : "requests.csv", rest));
  r.requests();
  experiment_of(r.set).validate();
}
Texts recording_seeds() {
  return {
      "0" + fixture("bench/vllm_detailed.json"), "1arrival_s,prompt_tokens,output_tokens\n0.5,10,20\n1,5,6\n",
      R"x(0{"format":1,"provenance":"measured","tool":"x","conditions":{"tp":"8","kv_dtype":"fp8_e5m2 (claimed)"},)x"
      R"x("points":[{"request_rate":"inf","requests":[{"intended_s":0,"prompt_tokens":3,"output_tokens":4}]}]})x"};
}

// The counters of a checkpoint, the name of its folder, and the file that names the best one.
void checkpoint(std::string_view bytes) {
  static const Scratch scratch;
  const fs::path file = scratch.put("checkpoint-3/trainer_state.json", bytes);
  scratch.put("best_checkpoint.json", bytes);
  train::chosen_checkpoint(scratch.path(), train::CheckpointChoice::best);
  train::read_counters(file.parent_path());
}
Texts checkpoint_seeds() {
  return {
      R"({"schema":1,"step":3,"tokens":100,"seconds":1.5,"answers_asked":2,"answers_before":1})",
      R"({"step":3,"tokens":1,"seconds":2,"answers_asked":2,"answers_before":1,"evaluations":{"last":3,"answered":null,)"
      R"("asked":2,"right":1,"best_step":3,"best_value":1.5,"since_best":0}})",
      R"({"schema":1,"step":3,"metric":"eval/loss","value":1.25})"};
}

void kernel_choices(std::string_view bytes) {
  using engine::Arithmetic;
  const auto choice = engine::cached_choice(bytes, Arithmetic::fma, engine::usable_cpu(), "P 1 2");
  if (!choice) return;
  for (const engine::ProductKind kind : all_values<engine::ProductKind>()) {
    const std::vector<engine::Cpu> known = engine::candidates(Arithmetic::fma, kind, engine::usable_cpu());
    if (std::find(known.begin(), known.end(), (*choice)[kind]) == known.end()) std::abort();
  }
}
Texts kernel_choices_seeds() {
  const std::string cpu(to_string(engine::usable_cpu()));
  return {R"({"schema":"meshwright-kernels-1","choices":{"Meshwright )" MW_VERSION R"(, P 1 2, up to )" + cpu +
          R"(, fma":{"f32":"avx2","bf16":"avx2","few_bf16":"avx2","int8":"avx2"},"Q":{"f32":"amx"}}})"};
}

// The archive of a bundle, not compressed. The checksums of its headers are corrected, so that damage reaches more than
// their check.
void bundle(std::string_view bytes) {
  static const Scratch scratch;
  std::string tar(bytes);
  for (size_t at = 0; at + importing::kTarBlock <= tar.size();) {
    std::uint64_t sum = 0, size = 0;
    for (size_t i = 0; i < importing::kTarBlock; ++i)
      sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(tar[at + i]);
    for (size_t i = 124; i < 135; ++i) size = size * 8 + (static_cast<unsigned char>(tar[at + i]) & 7);
    if (std::string_view(tar).substr(at + 257, 5) == "ustar") {
      for (size_t i = 6; i-- > 0; sum >>= 3) tar[at + 148 + i] = static_cast<char>('0' + (sum & 7));
      tar[at + 154] = '\0';
    }
    at += importing::kTarBlock *
          (1 + std::min<std::uint64_t>((size + importing::kTarBlock - 1) / importing::kTarBlock, 1 << 20));
  }
  importing::check_bundle(scratch.put("b.tar", tar));
}
Texts bundle_seeds() {
  std::string tar;
  importing::TarWriter writer(
      [&](std::span<const std::byte> bytes) { tar.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); });
  writer.add("bundle.json", R"({"format":"meshwright-bundle","version":1,"runs":[{"name":"a","tags":"b",)"
                            R"("created":"2026-01-31T12:00:00Z"}]})");
  writer.add("runs/1/experiment.json", R"({"schema":1,"train":{"steps":3}})");
  writer.add("runs/1/files/step-1/weights", "www");
  writer.add("runs/1/events.jsonl",
             R"({"event":"started","info":{"steps":1},"time_s":0})"
             "\n"
             R"({"event":"checkpoint","step":1,"path":"step-1","time_s":1})"
             "\n"
             R"({"event":"finished","state":"done","steps":1,"tokens":1,"seconds":1,"peak_bytes":1})"
             "\n");
  writer.finish();
  return {tar, tar.substr(0, 5 * importing::kTarBlock)};
}

}  // namespace

Reader experiment_reader() {
  return {"experiment", experiment, experiment_seeds};
}
Reader sets_reader() {
  return {"sets", sets, sets_seeds, 512};
}
Reader event_line_reader() {
  return {"event_line", event_line, event_line_seeds, 2048};
}
Reader event_record_reader() {
  return {"event_record", event_record, event_record_seeds};
}
Reader measurements_reader() {
  return {"measurements", measurements, measurements_seeds};
}
Reader calibration_reader() {
  return {"calibration", calibration, calibration_seeds};
}
Reader hardware_reader() {
  return {"hardware", hardware_rows, hardware_seeds};
}
Reader recording_reader() {
  return {"recording", recording, recording_seeds};
}
Reader bundle_reader() {
  return {"bundle", bundle, bundle_seeds, 8192};
}
Reader kernel_choices_reader() {
  return {"kernel_choices", kernel_choices, kernel_choices_seeds, 1024};
}
Reader checkpoint_reader() {
  return {"checkpoint", checkpoint, checkpoint_seeds, 1024};
}

std::vector<Reader> experiment_readers() {
  return {experiment_reader(),   sets_reader(),           event_line_reader(), event_record_reader(),
          measurements_reader(), calibration_reader(),    hardware_reader(),   recording_reader(),
          checkpoint_reader(),   kernel_choices_reader(), bundle_reader()};
}

}  // namespace mw::readers
