// SPDX-License-Identifier: Apache-2.0
#include "core/views/proof_view.h"

#include <gtest/gtest.h>

namespace mw::views {
namespace {

TEST(ParityView, HasALineAndARowForEveryForm) {
  train::Parity parity;
  train::FormParity folded{.form = train::ParityForm::folded, .verdict = train::ParityVerdict::passed};
  folded.positions = {{0, 0, 0.5, 0.1, true}, {0, 1, 0.25, 0.1, true}, {1, 0, 2, 0.3, false}};
  folded.layers = {{0, 1e-6, 1e-7}, {1, 1e-5, 1e-6}};
  folded.tolerance_reason = "the same sums";
  train::FormParity served{.form = train::ParityForm::served, .verdict = train::ParityVerdict::failed};
  served.texts = {{.prompt = 0, .with_adapter = {1, 2}, .merged = {1, 2}},
                  {.prompt = 1, .with_adapter = {1, 2}, .merged = {1, 3}, .first_difference = 1}};
  train::FormParity reread{.form = train::ParityForm::reread, .reason = "too little memory"};
  parity.forms = {folded, reread, served};
  const ParityView view = parity_view(parity);
  ASSERT_EQ(view.lines.size(), 3u);
  EXPECT_EQ(view.lines[0].largest->size(), 3u);
  EXPECT_EQ((*view.lines[0].largest)[2].y, 2);
  EXPECT_EQ((*view.lines[0].largest)[2].x, 3);
  EXPECT_EQ(view.lines[0].layers->back().y, 1e-6);
  EXPECT_TRUE(view.lines[1].largest->empty());
  EXPECT_EQ(view.positions, 3);
  EXPECT_EQ(view.layers, 1);
  EXPECT_EQ(view.rows[0].text, "the same sums");
  EXPECT_EQ(view.rows[1].text, "too little memory");
  EXPECT_EQ(view.rows[2].text, "greedy text equal for 1 of 2 prompts; prompt 2 from token 2");
  EXPECT_EQ(view.rows[2].verdict, "failed");
}

}  // namespace
}  // namespace mw::views
