// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/designer/actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/model/catalogue.h"
#include "tests/mesh/targets.h"

namespace mw::designer {
namespace {

using namespace mesh;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = Action::Kind;

class Actions : public testing::Test {
 protected:
  void on(const std::string& model, hardware::Target target, int fsdp, int tp) {
    inventory_ = std::make_unique<model::TensorInventory>(model::catalogue_config(model));
    target_ = std::move(target);
    subject_ = {inventory_.get(), &target_, {}, ShardingUse::training};
    for (const model::LoraTarget& t : inventory_->lora_targets()) subject_.adapters.push_back({t.role, t.layer, 16});
    now_ = {{{{"fsdp", fsdp}, {"tp", tp}}}, {}, {}};
  }
  ActionResult attempt(const Action& action) {
    return try_action(subject_, now_,
                      place(*inventory_, now_.mesh, now_.rules, subject_.adapters, ShardingUse::training), action);
  }
  std::unique_ptr<model::TensorInventory> inventory_;
  hardware::Target target_;
  DesignContext subject_;
  MeshDesign now_;
};

TEST_F(Actions, RefusesTp8OnFourGlobalKvHeadsAndListsLegalSizes) {
  on("gemma4-31b", tpu({2, 4}), 2, 4);
  const ActionResult o = attempt({Kind::resize, "tp", 8});
  EXPECT_FALSE(o.accepted);
  EXPECT_THAT(refusal_text(o), HasSubstr("4 KV heads cannot be split over tp 8 (k_proj"));
  EXPECT_THAT(o.other_sizes, ElementsAre(1, 2)) << "the present 4 would change nothing";
  EXPECT_EQ(o.choice.mesh, (Mesh{{{"fsdp", 1}, {"tp", 8}}})) << "what was asked for can be shown";
}

TEST_F(Actions, RefusesSizeBeyondTheTargetForBothReasons) {
  on("gemma4-31b", tpu({2, 2, 1}), 1, 4);
  const ActionResult o = attempt({Kind::resize, "tp", 8});
  EXPECT_FALSE(o.accepted);
  EXPECT_THAT(refusal_text(o), AllOf(HasSubstr("4 KV heads"), HasSubstr("mesh uses 8 devices; target has 4")));
}

TEST_F(Actions, ResizesAnotherAxisToCoverTheTarget) {
  on("gemma4-31b", tpu({2, 4}), 2, 4);
  const ActionResult o = attempt({Kind::resize, "tp", 2});
  EXPECT_TRUE(o.accepted) << refusal_text(o);
  EXPECT_EQ(o.choice.mesh, (Mesh{{{"fsdp", 4}, {"tp", 2}}}));
  EXPECT_EQ(o.text, "fsdp 2 to 4, tp 4 to 2");
  EXPECT_FALSE(attempt({Kind::resize, "tp", 3}).accepted);
  EXPECT_FALSE(attempt({Kind::resize, "tp", 0}).accepted);
  EXPECT_FALSE(attempt({Kind::resize, "tp", -8}).accepted);
  EXPECT_FALSE(attempt({Kind::resize, "nothing", 2}).accepted);
}

TEST_F(Actions, VirtualDevicesGrowWithTheMesh) {
  on("gemma3-270m", cpu(), 1, 1);
  const ActionResult o = attempt({Kind::resize, "tp", 4});
  EXPECT_TRUE(o.accepted) << refusal_text(o);
  EXPECT_EQ(o.choice.mesh.devices(), 4);
  EXPECT_FALSE(attempt({Kind::resize, "tp", 8}).accepted) << "four query heads";
}

TEST_F(Actions, PlacesAxesOnDimensionsThatFit) {
  on("gemma3-27b", tpu({2, 4}), 4, 2);
  const ActionResult side = attempt({Kind::lay, "fsdp", 1});
  EXPECT_TRUE(side.accepted) << refusal_text(side);
  EXPECT_EQ(side.choice.places, (std::vector<RequestedPlacement>{{"fsdp", {1}}}));
  const ActionResult small = attempt({Kind::lay, "fsdp", 0});
  EXPECT_FALSE(small.accepted);
  EXPECT_THAT(refusal_text(small), HasSubstr("1, 2"));
  now_.places = {{"fsdp", {1}}};
  EXPECT_EQ(attempt({Kind::lay, "tp", 0}).choice.places.size(), 2u);
  EXPECT_TRUE(attempt({Kind::release, "fsdp"}).choice.places.empty());
}

TEST_F(Actions, PlacesAnAxisOnTwoDimensionsOneAfterTheOther) {
  on("gemma3-27b", tpu({4, 4}), 2, 8);
  now_.places = {{"tp", {0}}};  // too small by itself, as after a resize
  const ActionResult o = attempt({Kind::lay, "tp", 1});
  EXPECT_TRUE(o.accepted) << refusal_text(o);
  EXPECT_EQ(o.choice.places, (std::vector<RequestedPlacement>{{"tp", {0, 1}}}));
}

TEST_F(Actions, DropsPlacementThatTheNewSizeDoesNotFit) {
  on("gemma3-27b", tpu({2, 4}), 4, 2);
  now_.places = {{"tp", {0}}};
  const ActionResult o = attempt({Kind::resize, "tp", 8});
  EXPECT_TRUE(o.accepted) << refusal_text(o);
  EXPECT_TRUE(o.choice.places.empty());
}

TEST_F(Actions, ShardsADimensionInAllLayers) {
  on("gemma4-31b", tpu({2, 4}), 2, 4);
  const ActionResult o = attempt({Kind::shard, "tp", 1, "layers.5.q_proj"});
  EXPECT_TRUE(o.accepted) << refusal_text(o);
  ASSERT_EQ(o.choice.rules.overrides.size(), 1u);
  EXPECT_EQ(o.choice.rules.overrides[0].pattern, "^layers\\.\\d+\\.q_proj$");
  EXPECT_EQ(to_text(o.choice.rules.overrides[0].spec), "(-, (fsdp, tp), -)");
  const Placement then = place(*inventory_, o.choice.mesh, o.choice.rules, {}, ShardingUse::training);
  for (const PlacedTensor& t : then.tensors)
    EXPECT_EQ(t.role == model::Role::q_proj, to_text(t.spec) == "(-, (fsdp, tp), -)") << t.name;
  now_ = o.choice;
  const ActionResult again = attempt({Kind::shard, "tp", 0, "layers.7.q_proj"});
  EXPECT_EQ(again.choice.rules.overrides.size(), 1u) << "the rule is replaced";
  const ActionResult off = attempt({Kind::unshard, "tp", 0, "layers.7.q_proj"});
  EXPECT_EQ(to_text(off.choice.rules.overrides[0].spec), "(-, fsdp, -)");
  EXPECT_EQ(attempt({Kind::shard, "tp", 0, "embed"}).choice, now_) << "already so";
}

TEST_F(Actions, RefusesToShardAnIndivisibleDimension) {
  on("gemma4-31b", tpu({2, 4}), 1, 8);
  now_.mesh = {{{"fsdp", 8}, {"tp", 1}}};
  const ActionResult o = attempt({Kind::shard, "fsdp", 0, "layers.5.k_proj"});
  EXPECT_FALSE(o.accepted);
  EXPECT_THAT(refusal_text(o), HasSubstr("4 KV heads cannot be split over fsdp 8"));
  EXPECT_FALSE(attempt({Kind::shard, "fsdp", 7, "layers.5.k_proj"}).accepted);
  EXPECT_FALSE(attempt({Kind::shard, "fsdp", 0, "layers.99.k_proj"}).accepted);
}

TEST_F(Actions, AcceptsActionsOnAnInvalidDesign) {
  on("gemma4-31b", tpu({2, 4}), 1, 8);  // refused by the KV heads already
  EXPECT_THAT(attempt({Kind::resize, "tp", 16}).other_sizes, ElementsAre(1, 2, 4));
  EXPECT_TRUE(attempt({Kind::shard, "tp", 1, "layers.0.gate_proj"}).accepted);
  EXPECT_TRUE(attempt({Kind::resize, "tp", 4}).accepted);
}

TEST_F(Actions, AddsAndRemovesAxes) {
  on("gemma4-31b", tpu({2, 4}), 2, 4);
  const ActionResult more = attempt({Kind::add, "data"});
  EXPECT_TRUE(more.accepted);
  EXPECT_EQ(to_text(more.choice.mesh), "data 1, fsdp 2, tp 4");
  EXPECT_FALSE(attempt({Kind::add, "tp"}).accepted);
  EXPECT_FALSE(attempt({Kind::remove, "tp"}).accepted);
  now_ = more.choice;
  EXPECT_EQ(to_text(attempt({Kind::remove, "data"}).choice.mesh), "fsdp 2, tp 4");
}

TEST_F(Actions, SizeStepsAreTheDivisorsAndOneLargerSize) {
  on("gemma4-31b", tpu({2, 2, 1}), 1, 4);
  EXPECT_THAT(size_steps(subject_, now_.mesh, "tp"), ElementsAre(1, 2, 4, 8));
}

}  // namespace
}  // namespace mw::designer
