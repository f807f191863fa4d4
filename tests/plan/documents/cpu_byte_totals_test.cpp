// SPDX-License-Identifier: GPL-3.0-or-later
// The predicted memory of 200 documents for the target cpu, to the byte, against cpu_byte_totals.txt: training by
// device, sizes and servers. MW_WRITE_BYTE_TOTALS=1 writes it anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/files.h"
#include "core/plan/experiment/experiment_plan.h"
#include "tests/shipped.h"

namespace mw::plan {
namespace {

using Sets = std::vector<std::string>;

Sets sets_of_model(int variant) {
  static constexpr const char* kModels[] = {"gemma3-270m", "gemma2-2b",  "gemma3-1b",  "gemma4-e2b",
                                            "gemma3-4b",   "gemma4-12b", "gemma2-9b",  "gemma4-26b-a4b",
                                            "llama3.2-3b", "qwen3-32b",  "gemma4-e4b", "gemma3-27b"};
  return {std::string("model.id=") + kModels[variant % std::size(kModels)],
          "target.threads=" + std::to_string(1 + variant % 4), "target.memory_gib=" + std::to_string(16 << variant % 5),
          variant % 3 == 0 ? "train.dtype=f32" : "train.dtype=bf16"};
}

// Neighbouring variants differ in method, adapters, remat, lengths, chunks, evaluation and sampling.
Sets sets_of_training(int variant) {
  static constexpr const char* kRemats[] = {"none", "block", "layer"};
  static constexpr const char* kTargets[] = {"q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj", "q_proj,v_proj",
                                             "q_proj,o_proj", "down_proj,gate_proj"};
  Sets sets{"train.method=" + std::string(variant % 5 == 4 ? "full" : "lora"),
            "train.remat=" + std::string(kRemats[variant % 3]),
            "train.batch=" + std::to_string(1 + variant % 9),
            "train.accumulation=" + std::to_string(1 + variant % 2),
            "data.max_len=" + std::to_string(128 + 96 * (variant % 11)),
            "data.packing=" + std::string(variant % 2 == 0 ? "true" : "false"),
            "train.loss_chunk=" + std::to_string(64 * (variant % 5)),
            "lora.rank=" + std::to_string(4 << variant % 4),
            "lora.dropout=" + std::string(variant % 4 == 1 ? "0.1" : "0")};
  if (variant % 5 != 4) sets.push_back(std::string("lora.targets=") + kTargets[variant % std::size(kTargets)]);
  if (variant % 7 == 2) sets.emplace_back("lora.dora=true");
  if (variant % 3 == 1) sets.emplace_back("data.eval_fraction=0");
  if (variant % 4 == 2) sets.emplace_back("train.sample_every=0");
  if (variant % 6 == 5) sets.emplace_back("train.eval_rows=2");
  return sets;
}

Sets sets_of_mesh(int variant) {
  static const std::vector<Sets> kMeshes{
      {"mesh.fsdp=2"}, {"mesh.fsdp=2", "mesh.tp=2"}, {"mesh.data=2", "mesh.fsdp=2"}, {"mesh.tp=4"},
      {"mesh.fsdp=4"}, {"mesh.tp=2", "mesh.fsdp=4"}};
  return kMeshes[static_cast<size_t>(variant) % kMeshes.size()];
}

experiment::Experiment document(const std::vector<Sets>& parts) {
  experiment::Experiment e;
  for (const Sets& sets : parts) experiment::apply_sets(e, sets);
  return e;
}

std::string ledger_text(const Ledger& ledger) {
  std::string text;
  for (const Bytes bytes : ledger.bytes) text += " " + std::to_string(bytes.value);
  return text;
}

std::string peak_text(const plan::DeviceMemory& memory) {
  return memory.peak_instant + " of " + std::to_string(memory.capacity.value) + ":" + ledger_text(memory.at_peak);
}

std::string training_text(const experiment::Experiment& e, ReadData read) {
  const plan::DeviceMemory memory = plan_experiment(e, test::context(), read).plan.memory;
  std::string text = peak_text(memory);
  for (const plan::DeviceUse& device : memory.devices)
    text +=
        "\n  " + device.peak_instant + ":" + ledger_text(device.at_peak) + " |" + ledger_text(device.category_peaks);
  return text;
}

std::string sizes_text(const experiment::Experiment& e) {
  std::string text;
  for (const SizePoint& point : plan_experiment(e, test::context()).points)
    text += "\n  " + std::string(to_string(point.size.workload)) + " " + std::to_string(point.size.batch) + ":" +
            ledger_text(point.plan.memory.at_peak);
  return text;
}

std::string server_text(const experiment::Experiment& e) {
  return peak_text(plan_experiment(e, test::context()).plan.memory);
}

template <class Text>
void add(std::string& all, const std::string& name, const std::vector<Sets>& parts, const Text& text) {
  all += name;
  for (const Sets& sets : parts)
    for (const std::string& set : sets) all += " " + set;
  try {
    all += ", " + text(document(parts)) + "\n";
  } catch (const Error& error) {
    all += ", " + error.problem().id + "\n";
  }
}

std::string cpu_totals() {
  std::string all =
      "# Bytes by category at the peak of each device | peaks by category; see cpu_byte_totals_test.cpp.\n";
  const auto bound = [](const auto& e) { return training_text(e, ReadData::no); };
  for (int i = 0; i < 80; ++i) add(all, "train", {sets_of_model(i), sets_of_training(i)}, bound);
  for (int i = 0; i < 30; ++i) add(all, "mesh", {sets_of_model(i), sets_of_training(i), sets_of_mesh(i)}, bound);
  const Sets example{"model.path=" MW_RESOURCES "/base-model",
                     "data.path=" MW_RESOURCES "/instructions/small-world.json"};
  std::string read;
  for (int i = 0; i < 20; ++i) {
    Sets machine = sets_of_model(i);
    machine.erase(machine.begin());
    const Sets mesh = i % 2 == 0 ? Sets{} : sets_of_mesh(i);
    add(read, "read", {example, machine, sets_of_training(i), mesh},
        [](const auto& e) { return training_text(e, ReadData::yes); });
  }
  const std::string resources = MW_RESOURCES;
  for (size_t at = 0; (at = read.find(resources, at)) != std::string::npos;) read.replace(at, resources.size(), "");
  all += read;
  for (int i = 0; i < 30; ++i)
    add(all, "size",
        {sets_of_model(i),
         {"kind=size", "size.batches=" + std::to_string(1 + i % 3) + "," + std::to_string(4 + i),
          "size.prompt_len=" + std::to_string(16 + 50 * (i % 7)), "size.new_tokens=" + std::to_string(8 + 30 * (i % 5)),
          "size.chunk=" + std::to_string(32 << i % 3), i % 2 == 0 ? "size.adapters=true" : "size.adapters=false"}},
        sizes_text);
  for (int i = 0; i < 40; ++i)
    add(all, "serve",
        {sets_of_model(i),
         {"kind=serve", "serve.max_num_seqs=" + std::to_string(1 + 5 * (i % 8)),
          "serve.max_model_len=" + std::to_string(256 + 700 * (i % 6)),
          "serve.max_num_batched_tokens=" + std::to_string(4096 + 512 * (i % 3)),
          i % 3 == 1 ? "serve.sliding_window_kv=false" : "serve.sliding_window_kv=true",
          i % 4 == 3 ? "serve.kv_gib=0.5" : "serve.kv_gib=0"}},
        server_text);
  return all;
}

TEST(CpuByteTotals, ArePredictedAsRecorded) {
  const std::filesystem::path file = std::filesystem::path(MW_SOURCE_DIR) / "tests/plan/documents/cpu_byte_totals.txt";
  const std::string predicted = cpu_totals();
  if (std::getenv("MW_WRITE_BYTE_TOTALS")) write_file_atomically(file, predicted);
  EXPECT_EQ(read_file(file), predicted)
      << "write it anew: MW_WRITE_BYTE_TOTALS=1 build/release/tests/mw_plan_tests --gtest_filter=CpuByteTotals.*";
}

}  // namespace
}  // namespace mw::plan
