// SPDX-License-Identifier: GPL-3.0-or-later
// A training run of a random model that takes a few milliseconds a step, with a learning rate at which the held-out
// loss falls and rises again.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/experiment/experiment.h"
#include "tests/train/random_model.h"

namespace mw::test {

inline experiment::Experiment quick_experiment(const std::filesystem::path& folder,
                                               const std::vector<std::string>& sets = {}) {
  train::test::random_model("gemma3", folder);
  std::string rows;
  for (int i = 0; i < 40; ++i)
    rows += Json{{"prompt", "What is " + std::to_string(i) + "?"}, {"completion", std::to_string(i * 7)}}.dump() + "\n";
  write_file_atomically(folder / "rows.jsonl", rows);
  Json e = parse_json(R"({"schema": 1, "lora": {"rank": 2}, "data": {"max_len": 48, "eval_fraction": 0.2},
    "train": {"steps": 60, "batch": 4, "learning_rate": 0.05, "schedule": "constant", "warmup_steps": 0,
              "eval_every": 3, "sample_every": 6, "sample_prompts": 1, "checkpoint_every": 5, "keep_checkpoints": 1000},
    "sample": {"max_new_tokens": 2}})",
                      "quick");
  e["model"] = {{"path", folder.string()}, {"tokenizer", MW_RESOURCES "/base-model"}, {"init", "random"}};
  e["data"]["path"] = (folder / "rows.jsonl").string();
  experiment::Experiment out = experiment::Experiment::from_json(e, folder);
  experiment::apply_sets(out, sets);
  return out;
}

}  // namespace mw::test
