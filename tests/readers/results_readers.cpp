// SPDX-License-Identifier: GPL-3.0-or-later
// Readers of results and logs of other programs.
#include <sstream>

#include "core/formats/logs/run_log.h"
#include "core/formats/results/bench_import.h"
#include "core/formats/results/csv.h"
#include "tests/formats/ocdbt_bytes.h"
#include "tests/readers/reader.h"

namespace mw::readers {
namespace {

namespace fs = std::filesystem;
using namespace formats;
using Texts = std::vector<std::string>;

// Shortens lists to two entries, to keep the structure of a large file in a small one.
Json shortened(const Json& json) {
  if (!json.is_structured()) return json;
  Json out = json.is_array() ? Json::array() : Json::object();
  for (const auto& [key, value] : json.items()) {
    if (json.is_object())
      out[key] = shortened(value);
    else if (out.size() < 2)
      out.push_back(shortened(value));
  }
  return out;
}

void bench(std::string_view bytes) {
  static const Scratch scratch;
  const fs::path file = scratch.put("result.json", bytes);
  bench_kind(file);
  for (const BenchSet& set : read_bench(file)) bench_set(to_json(set, Detail::requests));
}
Texts bench_seeds() {
  Texts seeds;
  for (const char* name : {"vllm_plain.json", "vllm_old.json", "vllm_detailed.json"})
    seeds.push_back(fixture(std::string("bench/") + name));
  for (const char* name : {"guidellm_constant.json", "guidellm_failing.json", "guidellm_0.1.0.json",
                           "guidellm_0.3.1.json", "llama_bench.json"})
    seeds.push_back(shortened(Json::parse(fixture(std::string("bench/") + name))).dump());
  for (const char* name :
       {"llama_bench.csv", "aiperf_0.10.0.json", "genai_perf.json", "inference_perf_stage.json", "sglang.jsonl",
        "mlperf_server.txt", "mlperf_offline.txt", "llmperf_summary.json", "llmperf_responses.json"})
    seeds.push_back(fixture(std::string("bench/") + name));
  for (const char* name : {"vllm_appended.json", "llama_bench.jsonl"}) {
    std::istringstream lines(fixture(std::string("bench/") + name));
    std::string line, two;
    for (int i = 0; i < 2 && std::getline(lines, line); ++i) two += shortened(Json::parse(line)).dump() + "\n";
    seeds.push_back(two);
  }
  seeds.push_back("request_rate,output_throughput,mean_ttft_ms,completed\n1,2.5,3,4\ninf,5,,7\n");
  return seeds;
}

void csv(std::string_view bytes) {
  read_csv(bytes, "file.csv");
}
Texts csv_seeds() {
  return {"a,b\n1,2\n", "\"a\"\"x\",b\r\n\"1\n2\",\"\"\r\n", fixture("bench/llama_bench.csv")};
}

void log_file(std::string_view bytes, const char* name) {
  static const Scratch scratch;
  read_log(scratch.put(name, bytes));
}
void trainer_state(std::string_view bytes) {
  log_file(bytes, "trainer_state.json");
}
Texts trainer_state_seeds() {
  Texts seeds = fixtures_called("logs", "trainer_state.json");
  seeds.push_back(R"({"log_history":[{"step":1,"loss":NaN,"lr":1e-3},{"train_runtime":-Infinity}],"max_steps":2})");
  return seeds;
}
void training_run(std::string_view bytes) {
  log_file(bytes, "training_run.json");
}
Texts training_run_seeds() {
  return {R"({"training":{"loss":[1,2],"loss_mean":1.5},"eval":{"loss":[3]},"hardware":{"chips":8},)"
          R"("wall_time_seconds":12.5,"is_final":true,"config":{"lr":1e-3},"model_info":null})"};
}

std::string masked(std::string_view bytes) {
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(bytes)));
  return ocdbt_bytes::little(((crc >> 15) | (crc << 17)) + 0xa282ead8u, 4);
}
// Records preceded by two bytes of length, framed with valid checksums; or the unchanged file.
void tensorboard(std::string_view bytes) {
  const auto [which, rest] = choose(bytes, 2);
  if (which == 1) return log_file(rest, "events.out.tfevents.1");
  std::string file;
  for (std::string_view left = rest; left.size() > 2;) {
    const size_t n = std::min(left.size() - 2, static_cast<size_t>(static_cast<unsigned char>(left[0])) |
                                                   static_cast<size_t>(static_cast<unsigned char>(left[1])) << 8);
    const std::string length = ocdbt_bytes::little(n, 8);
    const std::string_view record = left.substr(2, n);
    file += length + masked(length) + std::string(record) + masked(record);
    left.remove_prefix(2 + n);
  }
  log_file(file, "events.out.tfevents.1");
}
Texts tensorboard_seeds() {
  Texts seeds;
  for (const char* file :
       {"tensorboardx/events.out.tfevents.1795302143.vm", "tensors/events.out.tfevents.1795302143.vm.9184.0"}) {
    const std::string all = fixture(std::string("logs/") + file);
    std::string records(1, '\0');
    for (size_t at = 0; at + 16 <= all.size();) {
      const size_t n =
          static_cast<unsigned char>(all[at]) | static_cast<size_t>(static_cast<unsigned char>(all[at + 1])) << 8;
      records += all.substr(at, 2) + all.substr(at + 12, n);
      at += 16 + n;
    }
    seeds.push_back(records);
    seeds.push_back("1" + all);
  }
  return seeds;
}

// Chunks of a type, two bytes of length and content, framed with valid checksums; or the unchanged file.
std::uint32_t crc32_of(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320 : 0);
  }
  return ~crc;
}
void event_log(std::string_view bytes) {
  static const Scratch scratch;
  const fs::path file = scratch.put("events.jsonl", bytes);
  if (log_kind(file) == LogKind::events) summarize_series(read_log(file));
}
Texts event_log_seeds() {
  return {
      "{\"event\":\"started\",\"info\":{\"steps\":3,\"name\":\"x\"}}\n"
      "{\"event\":\"metric\",\"name\":\"train/loss\",\"step\":1,\"value\":2.5,\"time_s\":1}\nno event\n"
      "{\"event\":\"finished\",\"state\":\"done\",\"seconds\":5}\n"};
}

// Logs of LLaMA-Factory, torchtune, axolotl and Unsloth, told apart by their content.
void trainer_log(std::string_view bytes) {
  static const Scratch scratch;
  const fs::path file = scratch.put("output.txt", bytes);
  if (log_kind(file) != LogKind::none) summarize_series(read_log(file));
}
Texts trainer_log_seeds() {
  Texts seeds;
  for (const char* name :
       {"llama_factory.jsonl", "llama_factory_old.jsonl", "torchtune_disk.txt", "torchtune_output.txt",
        "unsloth_terminal.txt", "unsloth_notebook.txt", "axolotl_bars.txt", "axolotl_numbers.txt"})
    seeds.push_back(fixture(std::string("logs/trainers/") + name));
  return seeds;
}

void wandb(std::string_view bytes) {
  const auto [which, rest] = choose(bytes, 2);
  if (which == 1) return log_file(rest, "run.wandb");
  std::string file = ":W&B" + std::string("\xe1\xbe\0", 3);
  for (std::string_view left = rest; left.size() > 3;) {
    const size_t n = std::min(left.size() - 3, static_cast<size_t>(static_cast<unsigned char>(left[1])) |
                                                   static_cast<size_t>(static_cast<unsigned char>(left[2])) << 8);
    const std::string chunk = left[0] + std::string(left.substr(3, n));
    file += ocdbt_bytes::little(crc32_of(chunk), 4) + ocdbt_bytes::little(n, 2) + chunk;
    left.remove_prefix(3 + n);
  }
  log_file(file, "run.wandb");
}
Texts wandb_seeds() {
  const std::string all = fixture("logs/wandb/run-fixture.wandb");
  std::string chunks(1, '\0');
  for (size_t at = 7; at + 7 <= all.size();) {
    const size_t n =
        static_cast<unsigned char>(all[at + 4]) | static_cast<size_t>(static_cast<unsigned char>(all[at + 5])) << 8;
    chunks += all.substr(at + 6, 1) + all.substr(at + 4, 2) + all.substr(at + 7, n);
    at += 7 + n;
  }
  return {chunks, "1" + all};
}

}  // namespace

Reader bench_reader() {
  return {"bench", bench, bench_seeds};
}
Reader csv_reader() {
  return {"csv", csv, csv_seeds};
}
Reader trainer_state_reader() {
  return {"trainer_state", trainer_state, trainer_state_seeds};
}
Reader training_run_reader() {
  return {"training_run", training_run, training_run_seeds};
}
Reader tensorboard_reader() {
  return {"tensorboard", tensorboard, tensorboard_seeds};
}
Reader event_log_reader() {
  return {"event_log", event_log, event_log_seeds};
}
Reader trainer_log_reader() {
  return {"trainer_log", trainer_log, trainer_log_seeds};
}
Reader wandb_reader() {
  return {"wandb", wandb, wandb_seeds};
}

std::vector<Reader> results_readers() {
  return {bench_reader(),       csv_reader(),       trainer_state_reader(), training_run_reader(),
          tensorboard_reader(), event_log_reader(), trainer_log_reader(),   wandb_reader()};
}

}  // namespace mw::readers
