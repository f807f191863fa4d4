// SPDX-License-Identifier: GPL-3.0-or-later
// The proof of an experiment's mesh with progress and a stop.
#include "core/jobs/prove.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "tests/base/scratch.h"

namespace mw::jobs {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

experiment::Experiment tiny_mesh() {
  experiment::Experiment e = experiment::Experiment::load(std::string(MW_RESOURCES) + "/examples/tiny-mesh.json");
  e.set("train.batch", "4");
  e.set("data.max_len", "64");
  return e;
}

TEST(Prove, ProvesTheShippedMesh) {
  long last = -1;
  const MeshProof proof = prove(tiny_mesh(), {.steps = 2, .progress = [&](const std::string& phase, long done, long) {
                                                if (phase == "proving") last = done;
                                              }});
  EXPECT_TRUE(proof.holds()) << proof.broken();
  EXPECT_EQ(last, 2);
  EXPECT_EQ(proof.proof.memory.size(), 8u);
  EXPECT_GT(proof.memory.size(), 8u * 4);  // devices and what each holds
  const Json json = to_json(proof);
  EXPECT_EQ(json["verdict"], "pass");
  EXPECT_EQ(json["planned_bytes"], json["counted_bytes"]);
  EXPECT_THAT(to_text(proof), HasSubstr("proved: the mesh computes what one device computes"));
}

// The largest losses and gradients of all steps on one device.
std::vector<double> magnitudes(const experiment::Experiment& e) {
  const MeshProof proof = prove(e, {.steps = 3});
  EXPECT_TRUE(proof.holds()) << proof.broken();
  std::vector<double> all;
  for (const train::TensorComparison& t : proof.proof.tensors)
    if (t.part == "loss" || t.part == "gradient") all.push_back(t.magnitude);
  return all;
}

TEST(Prove, DroppedDuplicatesAreInNoStep) {
  const test::Scratch folder;
  std::string rows;
  for (int i = 0; i < 12; ++i)
    rows += Json{{"prompt", "What is " + std::to_string(i) + "?"}, {"completion", std::to_string(i * i)}}.dump() + "\n";
  write_file_atomically(folder.path() / "once.jsonl", rows);
  write_file_atomically(folder.path() / "thrice.jsonl", rows + rows + rows);
  const auto with = [&](const char* file, bool drops) {
    experiment::Experiment e = tiny_mesh();
    e.set("data.path", (folder.path() / file).string());
    e.set("data.eval_fraction", "0");
    e.set_value("data.dedup", drops);
    return e;
  };
  const std::vector<double> once = magnitudes(with("once.jsonl", false));
  EXPECT_FALSE(once.empty());
  EXPECT_EQ(magnitudes(with("thrice.jsonl", true)), once);
  EXPECT_NE(magnitudes(with("thrice.jsonl", false)), once);
}

TEST(Prove, AStopEndsItAsCancelled) {
  std::stop_source stop;
  stop.request_stop();
  try {
    prove(tiny_mesh(), {.steps = 1000}, stop.get_token());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::cancelled);
  }
}

TEST(MeshProof, NamesWhatBreaksFirst) {
  MeshProof p;
  p.proof.steps = 1;
  p.proof.tensors = {{.step = 1, .part = "loss", .tensor = {}, .difference = 1e-7, .bound = 1e-5, .magnitude = 3},
                     {.step = 1,
                      .part = "gradient",
                      .tensor = "layers.3.q_proj.lora_a",
                      .difference = 0.5,
                      .bound = 1e-6,
                      .magnitude = 1}};
  mesh::Collective gather;
  gather.axis = "fsdp";
  gather.tensor = "layers.0.q_proj";
  p.proof.traffic = {{.step = 1, .device = 2, .what = gather, .planned = Bytes(100), .counted = Bytes(90)}};
  p.memory = {{.device = 1, .category = MemoryCategory::weights, .predicted = Bytes(100), .measured = Bytes(110)}};
  EXPECT_FALSE(p.holds());
  EXPECT_THAT(p.broken(), HasSubstr("gradient of layers.3.q_proj.lora_a, step 1"));
  EXPECT_THAT(to_text(p), HasSubstr("NOT PROVED: gradient of layers.3.q_proj.lora_a"));
  p.proof.tensors.pop_back();
  EXPECT_THAT(p.broken(), HasSubstr("all-gather of layers.0.q_proj over fsdp"));
  EXPECT_THAT(p.broken(), HasSubstr("90 bytes counted, 100 planned"));
  p.proof.traffic.clear();
  EXPECT_THAT(p.broken(), HasSubstr("weights on device 1"));
  p.memory[0].measured = Bytes(101);
  EXPECT_TRUE(p.holds());
}

}  // namespace
}  // namespace mw::jobs
