// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/search/smallest_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "core/mesh/layout/layout.h"
#include "core/model/catalogue.h"
#include "core/plan/prediction/plan_figures.h"
#include "tests/shipped.h"

namespace mw::plan {
namespace {

using test::context;

Request search_request(const char* model, const char* target, Work work = Work::train) {
  Request r;
  r.model = model::catalogue_config(model);
  r.target = context().catalogue.target(target);
  if (const auto* price = context().catalogue.price(r.target.chip.id)) r.price = *price;
  r.work = work;
  set_stack(r, default_stack(r.target.chip.vendor, work));
  r.mesh = {{{"fsdp", 1}, {"tp", r.target.devices()}}};
  r.lora.rank = 64;
  r.lora.alpha = 64;
  r.targets = {model::Role::q_proj, model::Role::k_proj, model::Role::v_proj, model::Role::o_proj};
  r.lengths.max_len = 4096;
  r.train = {};
  r.train.batch = 2, r.train.accumulation = 4, r.train.steps = 100, r.train.remat = model::Remat::layer;
  return r;
}

auto metrics(const Candidate& c) {
  return std::tuple(c.seconds, c.usd, c.peak.value);
}

// The same space walked by plain loops.
std::vector<Candidate> by_hand(const Request& r) {
  std::vector<Candidate> out;
  for (int tp = 1; tp <= 4; ++tp) {
    if (4 % tp != 0) continue;
    for (const std::int64_t batch : {1, 2, 4, 8}) {
      if (batch % (4 / tp) != 0) continue;
      for (const model::Remat remat : {model::Remat::none, model::Remat::block, model::Remat::layer})
        for (const int chunk : {0, 256, 1024}) {
          Request one = r;
          one.mesh = {{{"fsdp", 4 / tp}, {"tp", tp}}};
          one.train.batch = batch;
          one.train.accumulation = static_cast<int>(8 / batch);
          one.train.remat = remat;
          one.train.loss_chunk = chunk;
          const Plan plan = predict(one);
          if (!plan.fits()) continue;
          out.push_back({.choice = choice_of(one),
                         .seconds = plan.step.seconds.value,
                         .usd = plan.run.usd.value,
                         .peak = plan.memory.at_peak.total()});
        }
    }
  }
  return out;
}

TEST(Search, MatchesExhaustiveLoops) {
  const Request r = search_request("gemma4-31b", "v5p-8");
  const SearchResult found = search(std::span(&r, 1), {});
  const std::vector<Candidate> expected = by_hand(r);
  ASSERT_EQ(found.candidates.size(), expected.size());
  ASSERT_GT(expected.size(), 10U);
  for (const Candidate& e : expected) {
    const auto at = std::find_if(found.candidates.begin(), found.candidates.end(),
                                 [&](const Candidate& c) { return c.choice == e.choice; });
    ASSERT_NE(at, found.candidates.end()) << to_text(e.choice, Work::train);
    EXPECT_EQ(metrics(*at), metrics(e));
  }
}

TEST(Search, EveryCandidateFitsAndIsLegal) {
  const Request r = search_request("gemma4-31b", "v5p-16");
  const SearchResult found = search(std::span(&r, 1), {});
  EXPECT_GT(found.evaluated, static_cast<std::int64_t>(found.candidates.size()));
  for (const Candidate& c : found.candidates) {
    EXPECT_TRUE(c.fits());
    EXPECT_LE(c.choice.mesh.size("tp"), 4);  // the global layers have four KV heads
    EXPECT_EQ(c.choice.mesh.devices(), 8);
    EXPECT_EQ(c.choice.batch * c.choice.accumulation, 8);
    EXPECT_EQ(c.choice.batch % c.choice.mesh.size("fsdp"), 0);
    const Plan plan = predict(with_choice(r, c.choice));
    EXPECT_TRUE(plan.fits());
    EXPECT_EQ(plan.step.seconds.value, c.seconds);
  }
}

// Every choice of SearchScope::settings by plain loops, predicted one by one.
long fitting_by_hand(const Request& r) {
  const PlanChoice own = choice_of(r);
  const std::int64_t rows = r.train.batch * r.train.accumulation;
  std::vector<RowLayout> layouts{r.lengths.rows};
  if (r.lengths.rows != RowLayout::packed && !r.lengths.histogram.empty()) layouts.push_back(RowLayout::packed);
  std::vector<model::DType> adapters{own.adapters};
  if (r.method == model::TrainMethod::lora) adapters = {model::DType::f32, model::DType::bf16};
  long fitting = 0;
  for (const mesh::Mesh& mesh : legal_meshes(r))
    for (std::int64_t batch = 1; batch <= rows; ++batch)
      for (const model::Remat remat : {model::Remat::none, model::Remat::block, model::Remat::layer})
        for (const int chunk : {0, 128, 256, 512, 1024})
          for (const RowLayout layout : layouts)
            for (const auto attention : {StackProfile::Attention::materialised, StackProfile::Attention::fused})
              for (const model::DType adapter : adapters)
                for (const model::DType moment : {model::DType::f32, model::DType::bf16}) {
                  if (rows % batch != 0 || batch % mesh::batch_devices(mesh) != 0) continue;
                  if (moment == model::DType::bf16 && adapter == model::DType::f32 && own.moments != moment) continue;
                  PlanChoice c = own;
                  c.mesh = mesh;
                  c.batch = batch;
                  c.accumulation = static_cast<int>(rows / batch);
                  c.remat = remat;
                  c.loss_chunk = chunk;
                  c.rows = layout;
                  c.attention = attention;
                  c.adapters = adapter;
                  c.moments = moment;
                  try {
                    fitting += predict(with_choice(r, c)).fits();
                  } catch (const Error&) {
                    // refused whatever else is chosen
                  }
                }
  return fitting;
}

std::vector<Request> various_requests() {
  std::vector<Request> all;
  for (const char* model : {"gemma4-31b", "gemma4-26b-a4b", "gemma4-e2b"})
    all.push_back(search_request(model, "v5p-8"));
  all.push_back(search_request("gemma3-1b", "2xh100"));  // eager, rows as long as the longest of a micro-batch
  all.back().lengths = {.histogram = {{90, 700}, {300, 5000}, {900, 1000}}, .max_len = 1024, .rows = RowLayout::ragged};
  all.push_back(search_request("gemma3-12b", "v5p-16"));
  all.back().method = model::TrainMethod::full;
  all.push_back(search_request("gemma3-4b", "8xh100"));
  set_stack(all.back(), model::Stack::torchtitan);
  all.back().products = model::DType::fp8;
  all.back().train.saved = {options::SavedActivation::attention, options::SavedActivation::o_proj};
  all.push_back(search_request("gemma3-4b", "v5p-8"));
  set_stack(all.back(), model::Stack::maxtext);
  all.back().train.offload = options::Offload::host;
  return all;
}

TEST(Search, FiguresOfTrainingAreThoseOfPredict) {
  for (const Request& r : various_requests()) {
    SCOPED_TRACE(r.model.id + " on " + r.target.id + " with " + std::string(to_string(r.stack)));
    const SearchResult found = search(std::span(&r, 1), {.scope = SearchScope::settings});
    EXPECT_EQ(static_cast<long>(found.candidates.size()), fitting_by_hand(r));
    ASSERT_GT(found.candidates.size(), 20U);
    for (size_t i = 0; i < found.candidates.size(); i += 1 + found.candidates.size() / 200) {
      const Candidate& c = found.candidates[i];
      const Plan plan = predict(with_choice(r, c.choice));
      EXPECT_EQ(plan.step.seconds.value, c.seconds) << to_text(c.choice, Work::train);
      EXPECT_EQ(plan.run.tokens_per_second, c.tokens_per_second);
      EXPECT_EQ(plan.run.hours.value, c.hours);
      EXPECT_EQ(plan.run.usd.value, c.usd);
      EXPECT_EQ(plan.memory.at_peak.total(), c.peak) << to_text(c.choice, Work::train);
      EXPECT_EQ(plan.memory.capacity, c.capacity);
    }
  }
}

std::vector<Request> inference_requests() {
  std::vector<Request> all;
  for (const Work work : {Work::forward, Work::rollout, Work::serve})
    for (const auto& [model, target] : {std::pair("gemma4-31b", "v6e-8"), std::pair("gemma4-26b-a4b", "v5p-16"),
                                        std::pair("gemma3-4b", "8xh100"), std::pair("gemma4-e2b", "v5e-8")}) {
      all.push_back(search_request(model, target, work));
      Request& r = all.back();
      r.mesh = {{{"data", 1}, {"fsdp", 1}, {"tp", r.target.devices()}}};
      r.forward.batch = r.rollout.batch = 24;
      r.forward.top_k = 8;
    }
  all.push_back(search_request("gemma4-31b", "8xh100", Work::serve));  // its heads need Triton's kernel
  all.back().serve.max_num_batched_tokens = 300;                       // refuses 512 sequences
  all.push_back(search_request("gemma3-27b", "v6e-8", Work::serve));
  all.back().serve.max_model_len = 100000;  // does not fit into every cache
  all.back().serve.memory_utilisation = 0.4;
  return all;
}

// Empty if it has none, or is refused.
std::optional<Plan> plan_of(const Request& r) {
  try {
    Plan plan = predict(r);
    if (plan.refusals.empty()) return plan;
  } catch (const Error&) {
    // the same
  }
  return std::nullopt;
}

TEST(Search, FiguresOfInferenceAreThoseOfPredict) {
  int planned = 0, refused = 0;
  for (const Request& r : inference_requests()) {
    SCOPED_TRACE(r.model.id + " on " + r.target.id + ", work " + std::to_string(static_cast<int>(r.work)));
    for (const mesh::Mesh& mesh : legal_meshes(r)) {
      PlanChoice choice = choice_of(r);
      choice.mesh = mesh;
      PlanPredictor predictor(with_choice(r, choice));
      for (const model::DType kv : {model::DType::bf16, model::DType::fp8})
        for (const int setting : {16, 64, 512}) {
          choice.kv = kv;
          choice.max_num_seqs = choice.loss_chunk = setting;
          const Request one = with_choice(r, choice);
          predictor.request().kv = one.kv;
          predictor.request().serve.max_num_seqs = one.serve.max_num_seqs;
          predictor.request().forward.chunk = one.forward.chunk;
          const auto figures = predictor.figures();
          const auto plan = plan_of(one);
          (plan ? planned : refused) += 1;
          ASSERT_EQ(figures.has_value(), plan.has_value()) << to_text(choice, r.work);
          if (!plan) continue;
          EXPECT_EQ(plan->step.seconds.value, figures->seconds) << to_text(choice, r.work);
          EXPECT_EQ(plan->run.tokens_per_second, figures->tokens_per_second) << to_text(choice, r.work);
          EXPECT_EQ(plan->run.hours.value, figures->hours);
          EXPECT_EQ(r.work == Work::serve ? plan->run.usd_per_million_tokens : plan->run.usd.value, figures->usd);
          EXPECT_EQ(plan->memory.at_peak.total(), figures->peak) << to_text(choice, r.work);
          EXPECT_EQ(plan->memory.capacity, figures->capacity);
        }
    }
  }
  EXPECT_GT(planned, 200);
  EXPECT_GT(refused, 20);
}

// Targets with several slices or nodes, and axes that may cross the network between them.
std::vector<Request> requests_over_network() {
  std::vector<Request> all{search_request("gemma3-4b", "2xv5p-8"),
                           search_request("gemma3-4b", "4xv5e-4"),
                           search_request("gemma3-4b", "2xv5p-8"),
                           search_request("gemma3-4b", "16xh100"),
                           search_request("gemma3-27b", "16xh100", Work::serve),
                           search_request("gemma3-4b", "2xv5p-8", Work::rollout)};
  set_stack(all[2], model::Stack::maxtext);
  for (Request& r : all) {
    r.train.batch = 16;
    r.rollout.batch = 16;
  }
  all[4].mesh = {{{"data", 1}, {"tp", 16}}};
  return all;
}

TEST(Search, OffersTheSplitsBetweenSlicesAndNodesAndIsNeverWorse) {
  for (const Request& r : requests_over_network()) {
    SCOPED_TRACE(r.model.id + " on " + r.target.id + " with " + std::string(to_string(r.stack)));
    const SearchResult found = search(std::span(&r, 1), {});
    ASSERT_FALSE(found.candidates.empty());
    double best_free = 1e300, best = 1e300;
    int placed = 0;
    for (const Candidate& c : found.candidates) {
      const Request chosen = with_choice(r, c.choice);
      const Plan plan = predict(chosen);
      EXPECT_EQ(plan.step.seconds.value, c.seconds) << to_text(c.choice, r.work);
      EXPECT_EQ(plan.run.tokens_per_second, c.tokens_per_second);
      EXPECT_EQ(plan.memory.at_peak.total(), c.peak);
      EXPECT_FALSE(mesh::network_split(mesh::lay_out(chosen.mesh, chosen.target, chosen.places)).empty());
      placed += !c.choice.places.empty();
      best = std::min(best, time_of(c, r.work));
      if (c.choice.places.empty()) best_free = std::min(best_free, time_of(c, r.work));
    }
    EXPECT_GT(placed, 0);
    EXPECT_EQ(time_of(found.candidates.front(), r.work), best);
    EXPECT_LE(best, best_free);
  }
}

// Two slices: one axis of an even size crosses the network, and the rest has to be four chips.
TEST(Search, TriesEachAxisBetweenTwoSlices) {
  const Request r = requests_over_network()[2];
  std::set<std::string> tried, expected;
  for (const Candidate& c : search(std::span(&r, 1), {}).candidates) {
    const mesh::Layout layout = mesh::lay_out(c.choice.mesh, r.target, c.choice.places);
    tried.insert(mesh::to_text(c.choice.mesh) + " over " + mesh::to_text(mesh::Mesh{mesh::network_split(layout)}));
  }
  for (const mesh::Mesh& mesh : legal_meshes(r))
    for (const mesh::MeshAxis& axis : mesh.axes)
      if (axis.size % 2 == 0 && 16 % mesh::batch_devices(mesh) == 0)
        expected.insert(mesh::to_text(mesh) + " over " + axis.name + " 2");
  EXPECT_EQ(tried, expected);
  EXPECT_GT(expected.size(), 10U);
}

TEST(Search, PlacesOfAChoiceAreEditsOfTheDocument) {
  const PlanChoice from = choice_of(requests_over_network()[0]);
  PlanChoice to = from;
  to.mesh = {{{"fsdp", 4}, {"tp", 2}}};
  to.places = {{"fsdp", {1, 2}}};
  EXPECT_NE(to_text(to, Work::train).find("fsdp 4, tp 2 (fsdp = 1, 2)"), std::string::npos);
  const auto value = [](const std::vector<lint::Edit>& all) {
    for (const lint::Edit& e : all)
      if (e.key == "sharding.places") return e.value;
    return Json("none");
  };
  EXPECT_EQ(value(edits(from, to, Work::train)), Json::array({"fsdp = 1, 2"}));
  EXPECT_EQ(value(edits(to, from, Work::train)), Json(nullptr));
  EXPECT_EQ(value(edits(to, to, Work::train)), Json("none"));
}

TEST(Search, EverySliceHasPlansOrAReason) {
  int planned = 0, explained = 0;
  for (const std::string& id : context().catalogue.target_ids()) {
    if (context().catalogue.target(id).chip.vendor != hardware::Vendor::tpu) continue;
    for (const Work work : {Work::train, Work::serve}) {
      const Request r = search_request("gemma4-31b", id.c_str(), work);
      SearchResult found;
      try {
        found = search(std::span(&r, 1), {});
      } catch (const Error&) {  // with the reason, as for chips without a published peak
        continue;
      }
      EXPECT_EQ(found.candidates.empty(), !found.without_plan.empty()) << id;
      (found.candidates.empty() ? explained : planned) += 1;
      for (const NoPlan& none : found.without_plan) EXPECT_GT(none.reason.size(), 20U) << id;
    }
  }
  EXPECT_GT(planned, 20);
  EXPECT_GT(explained, 5);
}

TEST(Search, SplitsLargeSlicesOverData) {
  for (const char* target : {"v5p-4096", "v5p-12288"}) {
    Request r = search_request("gemma4-31b", target);
    set_stack(r, model::Stack::maxtext);
    const SearchResult few = search(std::span(&r, 1), {});
    EXPECT_TRUE(few.candidates.empty());
    ASSERT_EQ(few.without_plan.size(), 1U);
    EXPECT_NE(few.without_plan[0].reason.find("8 rows"), std::string::npos) << few.without_plan[0].reason;
    r.train.batch = r.target.devices();
    r.train.accumulation = 1;
    const SearchResult found = search(std::span(&r, 1), {});
    ASSERT_FALSE(found.candidates.empty()) << target;
    for (const Candidate& c : found.candidates) {
      EXPECT_GT(c.choice.mesh.size("data"), 1);
      EXPECT_EQ(c.choice.mesh.devices(), r.target.devices());
      EXPECT_TRUE(predict(with_choice(r, c.choice)).fits());
    }
  }
}

// No tp of up to four and fsdp of the rest divides the model, and these stacks have no other axis.
TEST(Search, OffersNoAxisThatTheStackDoesNotHave) {
  for (const model::Stack stack : {model::Stack::tunix, model::Stack::torchax})
    for (const char* target : {"16xv5p-512", "v5p-4096"}) {
      SCOPED_TRACE(std::string(to_string(stack)) + " on " + target);
      Request r = search_request("gemma4-31b", target);
      set_stack(r, stack);
      r.train.batch = r.target.devices();
      r.train.accumulation = 1;
      EXPECT_THAT(legal_meshes(r), testing::IsEmpty());
      const SearchResult found = search(std::span(&r, 1), {});
      EXPECT_THAT(found.candidates, testing::IsEmpty());
      ASSERT_EQ(found.without_plan.size(), 1U);
      EXPECT_THAT(found.without_plan[0].reason,
                  testing::AllOf(testing::HasSubstr("divides the model"), testing::HasSubstr("has no axis data")));
      r.mesh.axes.insert(r.mesh.axes.begin(), {"data", 4});  // a document that the checker refuses
      EXPECT_THAT(legal_meshes(r), testing::IsEmpty());
    }
  Request r = search_request("gemma3-4b", "2xv5p-8");
  r.mesh = {{{"data", 2}, {"fsdp", 4}, {"tp", 1}}};
  ASSERT_THAT(legal_meshes(r), testing::Not(testing::IsEmpty()));
  for (const mesh::Mesh& mesh : legal_meshes(r)) EXPECT_EQ(mesh.size("data"), 1) << mesh::to_text(mesh);
}

TEST(Search, ExplainsAModelThatDoesNotFit) {
  const Request r = search_request("gemma4-31b", "v5e-1");
  const SearchResult found = search(std::span(&r, 1), {});
  ASSERT_EQ(found.without_plan.size(), 1U);
  EXPECT_EQ(found.without_plan[0].target, "v5e-1");
  EXPECT_NE(found.without_plan[0].reason.find("peak"), std::string::npos) << found.without_plan[0].reason;
}

TEST(Search, ParetoFrontIsExact) {
  const std::vector<Request> targets{search_request("gemma4-31b", "v5p-8"), search_request("gemma4-31b", "v6e-8"),
                                     search_request("gemma4-31b", "v5p-16")};
  const SearchResult found = search(targets, {});
  int front = 0;
  for (const Candidate& c : found.candidates) {
    const bool beaten = std::any_of(found.candidates.begin(), found.candidates.end(), [&](const Candidate& o) {
      return o.seconds <= c.seconds && o.usd <= c.usd && o.peak <= c.peak && metrics(o) != metrics(c);
    });
    EXPECT_EQ(c.pareto, !beaten) << to_text(c.choice, Work::train);
    front += c.pareto;
  }
  EXPECT_GT(front, 1);
  EXPECT_LT(front, static_cast<int>(found.candidates.size()));
}

TEST(Search, RanksByTimeCostOrMemory) {
  const std::vector<Request> targets{search_request("gemma3-27b", "v5p-8"), search_request("gemma3-27b", "v6e-8")};
  for (const RankBy by : {RankBy::time, RankBy::cost, RankBy::memory}) {
    const SearchResult found = search(targets, {.by = by});
    ASSERT_GT(found.candidates.size(), 2U);
    const auto key = [&](const Candidate& c) {
      return by == RankBy::time ? c.seconds : by == RankBy::cost ? c.usd : static_cast<double>(c.peak.value);
    };
    for (size_t i = 1; i < found.candidates.size(); ++i)
      EXPECT_LE(key(found.candidates[i - 1]), key(found.candidates[i]));
    const std::string best = found.candidates.front().choice.target;
    EXPECT_TRUE(best == "v5p-8" || best == "v6e-8");
  }
}

// Times that differ by rounding are equal: whatever the order of the candidates, the simpler one comes first.
TEST(Search, RoundingDecidesNoRank) {
  const Request own = lora_31b_v5p();
  Candidate simple{.choice = choice_of(own), .seconds = 1, .tokens_per_second = 1e5, .usd = 2, .peak = Bytes(1000)};
  Candidate twice = simple, copies = simple, slower = simple;
  twice.choice.accumulation *= 2;
  twice.tokens_per_second *= 1 + 1e-15, twice.usd *= 1 - 1e-15;
  copies.choice.mesh.axes.push_back({"data", 2});
  copies.tokens_per_second *= 1 + 2e-15;
  slower.tokens_per_second *= 0.999;
  std::vector<Candidate> all{slower, copies, twice, simple};
  std::vector<size_t> order{0, 1, 2, 3};
  do {
    std::vector<Candidate> ranked;
    for (const size_t i : order) ranked.push_back(all[i]);
    rank(ranked, {}, own);
    EXPECT_EQ(ranked[0].choice, simple.choice);
    EXPECT_EQ(ranked[1].choice, twice.choice);
    EXPECT_EQ(ranked[2].choice, copies.choice);
    EXPECT_EQ(ranked[3].tokens_per_second, slower.tokens_per_second);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Search, ListsTheFirstStackFirstAmongEqualTimes) {
  std::vector<Request> stacks(2, search_request("gemma3-4b", "v5p-8"));
  stacks[1].stack = model::Stack::torchax;  // the same times, at a lower price
  stacks[1].price.usd_per_chip_hour /= 2;
  const SearchResult found = search(stacks, {});
  ASSERT_GT(found.candidates.size(), 2U);
  EXPECT_EQ(found.candidates[0].choice.stack, stacks[0].stack);
  for (size_t i = 1; i < found.candidates.size(); ++i) {
    const Candidate &before = found.candidates[i - 1], &after = found.candidates[i];
    EXPECT_FALSE(time_of(before, Work::train) == time_of(after, Work::train) &&
                 before.choice.stack == model::Stack::torchax && after.choice.stack == stacks[0].stack);
  }
}

TEST(Search, DoesNotDependOnThreads) {
  const Request r = search_request("gemma4-31b", "v5p-8");
  const SearchResult one = search(std::span(&r, 1), {.threads = 1}), three = search(std::span(&r, 1), {.threads = 3});
  ASSERT_EQ(one.candidates.size(), three.candidates.size());
  for (size_t i = 0; i < one.candidates.size(); ++i) {
    EXPECT_EQ(one.candidates[i].choice, three.candidates[i].choice);
    EXPECT_EQ(metrics(one.candidates[i]), metrics(three.candidates[i]));
  }
}

TEST(Search, ReportsProgressAndCanBeCancelled) {
  const Request r = search_request("gemma4-31b", "v5p-8");
  std::int64_t last = 0, total = 0;
  search(std::span(&r, 1), {.threads = 1, .progress = [&](std::int64_t done, std::int64_t all) {
                              EXPECT_GT(done, last);
                              last = done;
                              total = all;
                            }});
  EXPECT_EQ(last, total);
  EXPECT_GT(total, 0);
  std::stop_source source;
  const SearchOptions stops{.threads = 1, .progress = [&](std::int64_t, std::int64_t) { source.request_stop(); }};
  try {
    search(std::span(&r, 1), stops, source.get_token());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::cancelled);
  }
}

TEST(Search, ServingVariesTypeAndSequences) {
  Request r = search_request("gemma4-31b", "v6e-8", Work::serve);
  r.method = model::TrainMethod::lora;
  r.targets.clear();
  const SearchResult found = search(std::span(&r, 1), {});
  ASSERT_FALSE(found.candidates.empty());
  bool fp8 = false, many = false;
  for (const Candidate& c : found.candidates) {
    fp8 |= c.choice.kv == model::DType::fp8;
    many |= c.choice.max_num_seqs > 64;
    EXPECT_TRUE(c.fits());
  }
  EXPECT_TRUE(fp8 && many);
  EXPECT_LE(time_of(found.candidates.front(), Work::serve), time_of(found.candidates.back(), Work::serve));
}

// --- smallest changes ---

TEST(SmallestChanges, EachFitsAndNoSubsetDoes) {
  Request r = search_request("gemma4-31b", "v5p-8");
  r.train = {};
  r.train.batch = 8, r.train.steps = 100;
  ASSERT_FALSE(predict(r).fits());
  const auto changes = smallest_changes(r);
  ASSERT_FALSE(changes.empty());
  const SearchResult all = search(std::span(&r, 1), {});
  for (const PlanChange& c : changes) {
    SCOPED_TRACE(c.label);
    // The candidate it leads to.
    const auto to = std::find_if(all.candidates.begin(), all.candidates.end(), [&](const Candidate& x) {
      return edits(choice_of(r), x.choice, Work::train) == c.edits;
    });
    ASSERT_NE(to, all.candidates.end());
    const Plan plan = predict(with_choice(r, to->choice));
    EXPECT_TRUE(plan.fits());
    EXPECT_EQ(plan.memory.at_peak.total(), c.peak);
    EXPECT_NEAR(c.slowdown, plan.step.seconds.value / predict(r).step.seconds.value - 1, 1e-12);
    // One setting less and it does not fit.
    const PlanChoice own = choice_of(r);
    const auto fits = [&](PlanChoice part) { return predict(with_choice(r, part)).fits(); };
    if (c.settings == 1) continue;
    for (int skip = 0; skip < 4; ++skip) {
      PlanChoice part = to->choice;
      if (skip == 0) part.mesh = own.mesh;
      if (skip == 1) part.batch = own.batch, part.accumulation = own.accumulation;
      if (skip == 2) part.remat = own.remat;
      if (skip == 3) part.loss_chunk = own.loss_chunk;
      if (part == to->choice || part.batch % part.mesh.size("fsdp") != 0) continue;
      EXPECT_FALSE(fits(part)) << to_text(part, Work::train);
    }
  }
  for (size_t i = 1; i < changes.size(); ++i) EXPECT_LE(changes[i - 1].settings, changes[i].settings);
}

TEST(SmallestChanges, EditsOnTheSameChipsComeBeforeOtherTargetsAndMeshes) {
  Request r = search_request("gemma4-31b", "v5p-8");
  r.train = {};
  r.train.batch = 8, r.train.steps = 100;
  const std::vector<Request> larger{search_request("gemma4-31b", "v5p-64")};
  const auto changes = smallest_changes(r, larger);
  const auto moves = [](const PlanChange& c) { return c.edits.front().key == "target.id"; };
  EXPECT_TRUE(std::is_partitioned(changes.begin(), changes.end(), [&](const PlanChange& c) { return !moves(c); }));
  EXPECT_TRUE(moves(changes.back()));
  ASSERT_FALSE(moves(changes.front()));
  EXPECT_EQ(fix_of(changes.front()).slowdown, changes.front().slowdown);
}

TEST(SmallestChanges, ShortensPackedRowsAndKeepsTheTokensOfAStep) {
  Request r = search_request("gemma3-1b", "v5p-8");
  r.train = {};
  r.train.batch = 8, r.train.steps = 100;
  r.lengths = {.histogram = {{300, 5000}, {900, 1000}}, .max_len = 4096, .rows = RowLayout::packed};
  r.target.chip.memory.value = 0.9 * static_cast<double>(predict(r).memory.at_peak.total().value);
  ASSERT_FALSE(predict(r).fits());
  const auto shorter = [](const std::vector<PlanChange>& changes) {
    return std::find_if(changes.begin(), changes.end(),
                        [](const PlanChange& c) { return c.settings == 1 && c.edits.front().key == "data.max_len"; });
  };
  const auto changes = smallest_changes(r);
  const auto found = shorter(changes);
  ASSERT_NE(found, changes.end());
  const int length = found->edits[0].value.get<int>();
  EXPECT_GE(length, 900) << "every example still fits";
  ASSERT_EQ(found->edits[1].key, "train.accumulation");
  EXPECT_EQ(found->edits[1].value.get<int>() * length, 4096);
  r.lengths.histogram.back().first = 4000;
  const auto long_rows = smallest_changes(r);
  EXPECT_EQ(shorter(long_rows), long_rows.end()) << "rows of 4,000 tokens would be dropped";
}

TEST(SmallestChanges, OffersBf16Weights) {
  Request r = search_request("gemma4-31b", "v5p-8");
  r.weights = model::DType::f32;
  r.target.chip.memory.value = 0.9 * static_cast<double>(predict(r).memory.at_peak.total().value);
  ASSERT_FALSE(predict(r).fits());
  const auto changes = smallest_changes(r);
  ASSERT_TRUE(std::any_of(changes.begin(), changes.end(), [](const PlanChange& c) {
    return c.edits.back() == lint::Edit{"train.dtype", "bf16"} || c.edits.front() == lint::Edit{"train.dtype", "bf16"};
  }));
}

TEST(Search, EndsQuicklyForHugeBatches) {
  Request r = search_request("gemma3-1b", "v5p-8");
  r.train.batch = r.train.accumulation = 65536;
  EXPECT_GT(search(std::span(&r, 1), {}).evaluated, 100);
  r.lora.rank = 1 << 21;  // no choice has a plan: its error is the answer
  EXPECT_THROW(search(std::span(&r, 1), {}), Error);
}

TEST(SmallestChanges, EmptyForAPlanThatFits) {
  EXPECT_TRUE(smallest_changes(search_request("gemma3-1b", "v5p-8")).empty());
}

TEST(SmallestChanges, OffersALargerTargetIfNothingElseFits) {
  Request r = search_request("gemma4-31b", "v5e-1");
  r.mesh = {{{"fsdp", 1}, {"tp", 1}}};
  ASSERT_FALSE(predict(r).fits());
  EXPECT_TRUE(smallest_changes(r).empty());
  const std::vector<Request> larger{search_request("gemma4-31b", "v5p-8")};
  const auto changes = smallest_changes(r, larger);
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes.front().edits.front(), (lint::Edit{"target.id", "v5p-8"}));
  EXPECT_LT(changes.front().slowdown, 0);
}

}  // namespace
}  // namespace mw::plan
