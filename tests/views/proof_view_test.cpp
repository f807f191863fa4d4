// SPDX-License-Identifier: Apache-2.0
#include "core/views/proof_view.h"

#include <gtest/gtest.h>

namespace mw::views {
namespace {

ProofView proof() {
  return {.holds = false,
          .verdict = "1 of 2 tensors differs",
          .tables = {{"Tensors", {"Tensor", "Difference"}, {{{"a, b", "0"}, true}, {{"c|d", "say \"no\""}, false}}},
                     {"Memory", {"Device"}, {{{"0"}, true}}}}};
}

TEST(ProofView, FindsTheFirstFailure) {
  EXPECT_EQ(proof().tables[0].first_broken(), 1);
  EXPECT_EQ(proof().tables[0].broken(), 1);
  EXPECT_EQ(proof().tables[1].first_broken(), -1);
}

TEST(ProofView, CsvQuotesSpecialCharacters) {
  EXPECT_EQ(to_csv(proof().tables[0]), "Tensor,Difference,holds\r\n\"a, b\",0,yes\r\nc|d,\"say \"\"no\"\"\",no\r\n");
  EXPECT_EQ(to_csv(proof()),
            "table,Tensor,Difference,holds\r\nTensors,\"a, b\",0,yes\r\nTensors,c|d,\"say \"\"no\"\"\",no\r\n"
            "table,Device,holds\r\nMemory,0,yes\r\n");
}

TEST(ProofView, MarkdownKeepsItsColumns) {
  EXPECT_EQ(to_markdown(proof()),
            "**Does not hold.** 1 of 2 tensors differs\n"
            "\n### Tensors\n\n| Tensor | Difference | Holds |\n|---|---|---|\n| a, b | 0 | yes |\n"
            "| c\\|d | say \"no\" | **no** |\n"
            "\n### Memory\n\n| Device | Holds |\n|---|---|\n| 0 | yes |\n");
}

// Two devices, one step: a gradient out of its bound, one collective on both devices, memory as predicted.
jobs::MeshProof broken() {
  jobs::MeshProof p;
  p.proof.mesh = {{{"tp", 2}}};
  p.proof.steps = 1;
  p.proof.tensors = {{1, "loss", "", 0, 1e-6, 2.5}, {1, "gradient", "layers.0.q_proj.lora_a", 0.5, 1e-6, 1}};
  mesh::Collective sum;
  sum.kind = mesh::CollectiveKind::all_reduce;
  sum.axis = "tp";
  sum.cause = mesh::Cause::partial_sums;
  sum.tensor = "layers.0.mlp";
  p.proof.traffic = {{1, 0, sum, Bytes(64), Bytes(64)}, {1, 1, sum, Bytes(64), Bytes(64)}};
  p.memory = {{1, MemoryCategory::weights, Bytes(1 << 20), Bytes(1 << 20)}};
  return p;
}

TEST(ProofView, AFailedProofNamesTheTensor) {
  const ProofView view = view_of(broken());
  EXPECT_FALSE(view.holds);
  EXPECT_NE(view.verdict.find("layers.0.q_proj.lora_a"), std::string::npos) << view.verdict;
  ASSERT_EQ(view.tables.size(), 3u);
  EXPECT_EQ(view.tables[0].first_broken(), 1);
  EXPECT_EQ(view.tables[0].rows[1].cells[0], "layers.0.q_proj.lora_a");
  ASSERT_EQ(view.tables[1].rows.size(), 1u);  // devices are summed
  EXPECT_EQ(view.tables[1].rows[0].cells.back(), "128");
  EXPECT_EQ(view.tables[2].rows[0].cells[4], "0 %");
  for (const ProofTable& table : view.tables)
    for (const ProofRow& row : table.rows) EXPECT_EQ(row.cells.size(), table.columns.size());
}

TEST(ProofView, AProofThatHoldsStatesWhatWasCompared) {
  jobs::MeshProof p = broken();
  p.proof.tensors.pop_back();
  const ProofView view = view_of(p);
  EXPECT_TRUE(view.holds);
  EXPECT_NE(view.verdict.find("all 128 bytes"), std::string::npos) << view.verdict;
}

}  // namespace
}  // namespace mw::views
