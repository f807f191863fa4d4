// SPDX-License-Identifier: GPL-3.0-or-later

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "core/base/files.h"
#include "core/experiment/bound_experiment.h"
#include "core/experiment/parameters.h"
#include "tests/store/store_fixture.h"

namespace mw::experiment {
namespace {

namespace fs = std::filesystem;
using test::Scratch;
using testing::HasSubstr;

std::string error_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(ParameterTable, EveryRowIsCompleteAndItsDefaultIsValid) {
  std::set<std::string> keys;
  for (const Parameter& p : parameters()) {
    EXPECT_TRUE(keys.insert(p.key).second) << p.key;
    EXPECT_FALSE(p.label.empty()) << p.key;
    EXPECT_FALSE(p.group.empty()) << p.key;
    EXPECT_GT(p.help.size(), 10u) << p.key;
    EXPECT_EQ(p.help.find('\n'), std::string::npos) << p.key;
    EXPECT_FALSE(range_text(p).empty()) << p.key;
    Experiment e;
    const std::string key = p.key.ends_with(".*") ? p.key.substr(0, p.key.size() - 1) + "fsdp" : p.key;
    e.set_value(key, p.fallback);
    EXPECT_THAT(e.validate(), testing::IsEmpty()) << p.key;
  }
}

TEST(ParameterTable, HasTheKeysThatTrainingUses) {
  for (const char* key : {"model.id",
                          "model.path",
                          "target.id",
                          "mesh.fsdp",
                          "mesh.tp",
                          "mesh.data",
                          "lora.rank",
                          "lora.alpha",
                          "lora.dropout",
                          "lora.targets",
                          "data.path",
                          "data.format",
                          "data.columns.prompt",
                          "data.columns.completion",
                          "data.columns.text",
                          "data.max_len",
                          "data.packing",
                          "data.loss",
                          "data.overlong",
                          "data.dedup",
                          "data.lengths",
                          "train.method",
                          "train.steps",
                          "train.batch",
                          "train.accumulation",
                          "train.learning_rate",
                          "train.remat",
                          "train.loss_chunk",
                          "train.dtype",
                          "train.seed"})
    EXPECT_NE(find_parameter(key), nullptr) << key;
  EXPECT_EQ(find_parameter("mesh.fsdp.x"), nullptr);
  EXPECT_EQ(nearest_key("lora.rnak"), "lora.rank");
}

TEST(Experiment, UnknownKeysSurviveSaveAndLoadInOrder) {
  const Scratch folder;
  const fs::path file = folder.path() / "e.json";
  write_file_atomically(file, R"({"schema":1,"zebra":{"b":1,"a":[1,2]},"lora":{"rank":4,"future":"x"}})");
  const Experiment e = Experiment::load(file);
  e.save(folder.path() / "copy.json");
  EXPECT_EQ(read_json(folder.path() / "copy.json").dump(),
            R"({"schema":1,"zebra":{"b":1,"a":[1,2]},"lora":{"rank":4,"future":"x"}})");
  EXPECT_EQ(e.value("lora.rank").get<long long>(), 4);
  const auto problems = e.validate();
  ASSERT_EQ(problems.size(), 2u);
  for (const Problem& p : problems) EXPECT_EQ(p.severity, Severity::warning);
}

TEST(Experiment, DefaultsComeFromTheTableAndSetOverridesThem) {
  Experiment e;
  EXPECT_EQ(e.value("train.steps").get<long long>(), 200);
  apply_sets(e, {"train.steps=20", "lora.targets=q_proj,v_proj", "train.learning_rate=1e-3", "data.packing=true",
                 "mesh.tp=1", "data.columns.prompt=question"});
  EXPECT_EQ(e.value("train.steps").get<long long>(), 20);
  EXPECT_THAT(e.value("lora.targets").get<std::vector<std::string>>(), testing::ElementsAre("q_proj", "v_proj"));
  EXPECT_DOUBLE_EQ(e.value("train.learning_rate").get<double>(), 1e-3);
  EXPECT_TRUE(e.value("data.packing").get<bool>());
  EXPECT_EQ(e.value("data.columns.prompt").get<std::string>(), "question");
  e.erase("train.steps");
  EXPECT_EQ(e.value("train.steps").get<long long>(), 200);
}

TEST(Experiment, ASetOfWhatWasMeasuredClearsTheMeasurement) {
  Experiment measured;
  measured.set_value("measured.hours", 3.0);
  measured.set_value("measured.source", "a paper");
  const auto after = [&](const std::vector<std::string>& sets) {
    Experiment e = measured;
    const std::vector<std::string> notes = apply_sets(e, sets);
    return std::pair(e.has("measured.hours"), notes);
  };
  EXPECT_THAT(after({"train.batch=2"}).second, testing::ElementsAre(HasSubstr("measured.hours, measured.source")));
  EXPECT_FALSE(after({"train.batch=2"}).first);
  EXPECT_TRUE(after({"train.batch=" + std::to_string(measured.value("train.batch").get<int>())}).first) << "the same";
  EXPECT_TRUE(after({"cost.requests_per_day=10"}).first);
  EXPECT_TRUE(after({"train.batch=2", "measured.hours=5"}).first) << "measured again";
}

TEST(Bind, FillsEverySectionFromDocumentAndTable) {
  const Experiment e = Experiment::from_json(parse_json(R"({
    "kind": "serve", "model": {"path": "m", "init": "random"}, "mesh": {"tp": 4, "fsdp": 2},
    "lora": {"rank_pattern": {"q_proj": 4}}, "data": {"columns": {"prompt": "question"}, "chat": "gemma2"},
    "train": {"steps": 7.0, "stack": "trl-fsdp", "dtype": "bf16"}, "serve": {"adapters": {"a": "x"}, "hours": [2, "3.5"]},
    "sweep": {"request_rates": [1, "inf"], "slo_tpot_ms": 25}})",
                                                        "document"),
                                             "/folder");
  const BoundExperiment config = e.config();
  EXPECT_EQ(config.kind, Kind::serve);
  EXPECT_EQ(config.model.path, "/folder/m");
  EXPECT_EQ(config.model.init, options::Init::random);
  EXPECT_EQ(config.mesh, (mesh::Mesh{{{"tp", 4}, {"fsdp", 2}}})) << "in document order";
  EXPECT_EQ(config.lora.rank, 16) << "the table's default";
  EXPECT_EQ(config.lora.rank_pattern, (std::vector<std::pair<std::string, int>>{{"q_proj", 4}}));
  EXPECT_EQ(config.data.columns, (std::map<std::string, std::string>{{"prompt", "question"}}));
  EXPECT_EQ(config.data.requested_chat, options::ChatFormat::gemma2);
  EXPECT_EQ(config.data.padding, std::nullopt) << "auto";
  EXPECT_EQ(config.train.rate.steps, 7);
  EXPECT_EQ(config.train.adamw.beta2, 0.999) << "not rounded to float";
  EXPECT_EQ(config.train.stack, model::Stack::trl_fsdp);
  EXPECT_TRUE(config.train.sets_dtype);
  EXPECT_FALSE(config.serve.sets_max_model_len);
  EXPECT_EQ(config.serve.adapters.front().second, "/folder/x");
  EXPECT_THAT(config.serve.hours, testing::ElementsAre(2, 3.5));
  EXPECT_THAT(config.sweep.request_rates, testing::ElementsAre("1", "inf"));
  EXPECT_EQ(config.sweep.slo.tpot_ms, 25);
}

TEST(Bind, IsDoneAnewAfterEachEditAndOnceForAllCopies) {
  Experiment e;
  const Experiment before = e;
  EXPECT_EQ(&e.config(), &before.config()) << "a copy shares what was read";
  e.set_value("lora.rank", 4);
  EXPECT_EQ(e.config().lora.rank, 4);
  EXPECT_EQ(before.config().lora.rank, 16);
  e.set_value("lora.rank", "many");
  EXPECT_THROW(e.config(), Error);
  EXPECT_EQ(e.valid_values().lora.rank, 16);
  e.erase("lora.rank");
  e.set("lora.alpha", "3");
  EXPECT_EQ(e.config().lora.alpha, 3);
  e = before;
  EXPECT_EQ(e.config().lora.alpha, 16);
  EXPECT_EQ(Experiment(e).config().lora.alpha, 16) << "of a temporary";
}

TEST(Bind, RefusesInvalidValuesUnlessTheyMayBeSkipped) {
  const Experiment e = Experiment::from_json(
      parse_json(R"({"lora": {"rank": "many", "alpha": 8}, "mesh": {"tp": 2, "fsdp": "all"}})", "document"));
  EXPECT_THROW(e.config(), Error);
  const BoundExperiment config = e.valid_values();
  EXPECT_EQ(config.lora.rank, 16);
  EXPECT_EQ(config.lora.alpha, 8);
  EXPECT_EQ(config.mesh, (mesh::Mesh{{{"tp", 2}}}));
  EXPECT_NO_THROW(e.data_config()) << "reading the data depends on neither";
}

TEST(Experiment, SetReportsKeyValueAndAllowedValues) {
  Experiment e;
  EXPECT_THAT(error_of([&] { apply_sets(e, {"lora.rnak=4"}); }), HasSubstr("did you mean lora.rank"));
  EXPECT_THAT(error_of([&] { apply_sets(e, {"lora.rank=four"}); }),
              testing::AllOf(HasSubstr("lora.rank"), HasSubstr("four"), HasSubstr("1 to 4096")));
  EXPECT_THAT(error_of([&] { apply_sets(e, {"lora.rank=0"}); }), HasSubstr("out of range"));
  EXPECT_THAT(error_of([&] { apply_sets(e, {"train.remat=blocks"}); }), HasSubstr("none, block, layer"));
  EXPECT_THAT(error_of([&] { apply_sets(e, {"lora.rank"}); }), HasSubstr("key=value"));
  EXPECT_THAT(error_of([&] { apply_sets(e, {"lora.targets=[\"q_proj\", 3]"}); }), HasSubstr("not one of the choices"));
  EXPECT_EQ(e, Experiment());
}

TEST(Experiment, ValidateReportsEveryInvalidValueWithPlaceAndFix) {
  const Experiment e = Experiment::from_json(parse_json(
      R"({"lora":{"rank":"16","dropout":2},"train":{"steps":1.5,"remat":7},"mesh":{"tp":-1},"data":3})", "test"));
  std::map<std::string, Problem> by_place;
  for (const Problem& p : e.validate()) by_place[p.place] = p;
  for (const char* key : {"lora.rank", "lora.dropout", "train.steps", "train.remat", "mesh.tp", "data"}) {
    ASSERT_TRUE(by_place.count(key)) << key;
    EXPECT_EQ(by_place[key].severity, Severity::error) << key;
    EXPECT_FALSE(by_place[key].expected.empty()) << key;
  }
  EXPECT_EQ(by_place["lora.dropout"].fix, "enter a number from 0 to 0.99");
  EXPECT_EQ(by_place["lora.rank"].fix, "enter a whole number from 1 to 4096");
  EXPECT_EQ(by_place["train.remat"].fix, "choose one of none, block, layer");
}

TEST(Experiment, SuggestsTheSectionForAMistypedSection) {
  const Experiment e = Experiment::from_json(parse_json(R"({"modle": {"id": "gemma3-1b"}, "nmae": "x"})", "test"));
  std::map<std::string, std::string> fixes;
  for (const Problem& p : e.validate()) fixes[p.place] = p.fix;
  EXPECT_EQ(fixes["modle"], "did you mean model?");
  EXPECT_EQ(fixes["nmae"], "did you mean name?");
}

TEST(Relevance, ShowsOptionsOfOtherSoftwareOnlyInPlans) {
  Experiment e;
  const auto concerns = [&](Kind kind, const char* key) { return relevance(e, kind).concerns(*find_parameter(key)); };
  for (const char* key : {"train.products", "train.saved", "train.offload", "train.compile", "train.logit_bytes"}) {
    e.set_value("target.id", "cpu");
    EXPECT_FALSE(concerns(Kind::train, key)) << key;
    e.set_value("target.id", "8xh100");
    EXPECT_TRUE(concerns(Kind::train, key)) << key;
    EXPECT_FALSE(concerns(Kind::serve, key)) << key;
  }
  EXPECT_TRUE(concerns(Kind::serve, "serve.weight_dtype"));
  e.set_value("target.id", "cpu");
  EXPECT_FALSE(concerns(Kind::serve, "serve.weight_dtype"));
}

TEST(Relevance, LeavesOutWhatTheSoftwareDoesNotOffer) {
  Experiment e;
  e.set_value("target.id", "8xh100");
  const auto concerns = [&](Kind kind, const char* key, std::optional<model::Stack> stack = {}) {
    return relevance(e, kind, stack).concerns(*find_parameter(key));
  };
  const char* const keys[]{"train.products", "train.saved", "train.offload", "train.compile"};
  for (const char* key : keys) {
    e.set_value("train.stack", "torchtitan");
    EXPECT_EQ(concerns(Kind::train, key), std::string(key) != "train.offload") << key;
    e.set_value("train.stack", "tunix");
    EXPECT_FALSE(concerns(Kind::train, key)) << key;
    e.erase("train.stack");
    EXPECT_TRUE(concerns(Kind::train, key)) << key << " of unknown software";
    EXPECT_FALSE(concerns(Kind::train, key, model::Stack::torchax)) << key;
  }
  EXPECT_TRUE(concerns(Kind::serve, "serve.products", model::Stack::vllm_gpu));
  EXPECT_FALSE(concerns(Kind::serve, "serve.products", model::Stack::jetstream));
  e.set_value("train.stack", "tunix");
  e.set_value("train.offload", "host");  // the plan refuses it: it must be seen to be removed
  EXPECT_TRUE(concerns(Kind::train, "train.offload"));
}

TEST(Relevance, SizesOnAnotherTargetCountOtherModels) {
  Experiment e;
  EXPECT_FALSE(relevance(e, Kind::size).concerns(*find_parameter("train.other_models")));
  e.set_value("target.id", "v5e-8");
  EXPECT_TRUE(relevance(e, Kind::size).concerns(*find_parameter("train.other_models")));
}

TEST(Relevance, LeavesOutWhatTheKindAndTheTargetDoNotUse) {
  const auto groups = [](const Relevance& relevance) {
    std::set<std::string> out;
    for (const Parameter& p : parameters())
      if (relevance.concerns(p)) out.insert(p.group);
    return out;
  };
  Experiment e;
  EXPECT_EQ(groups(relevance(e, Kind::train)), (std::set<std::string>{"Experiment", "Model", "Target", "Mesh", "LoRA",
                                                                      "Data", "Training", "Budget", "Sampling"}));
  EXPECT_TRUE(relevance(e, Kind::size).concerns(*find_parameter("train.dtype")));
  EXPECT_FALSE(relevance(e, Kind::size).concerns(*find_parameter("train.steps")));
  EXPECT_EQ(groups(relevance(e, Kind::serve)).count("Sweep"), 1u);
  e.set_value("train.method", "full");
  EXPECT_EQ(groups(relevance(e, Kind::train)).count("LoRA"), 0u);
  e.set_value("target.id", "v5p-8");
  EXPECT_EQ(groups(relevance(e, Kind::train)).count("Recipe"), 1u);
  e.set_value("target.id", 7);  // of the wrong type
  EXPECT_EQ(groups(relevance(e, Kind::train)).count("Recipe"), 0u);
}

TEST(Experiment, RejectsNewerSchemaAndNonObjects) {
  const Scratch folder;
  const fs::path file = folder.path() / "e.json";
  write_file_atomically(file, R"({"schema": 99})");
  EXPECT_THAT(error_of([&] { Experiment::load(file); }),
              testing::AllOf(HasSubstr("newer Meshwright"), HasSubstr("99"), HasSubstr("e.json")));
  write_file_atomically(file, "[1,2]");
  EXPECT_THAT(error_of([&] { Experiment::load(file); }), HasSubstr("JSON object"));
  write_file_atomically(file, "{\"schema\": 1,\n \"lora\": }");
  EXPECT_THAT(error_of([&] { Experiment::load(file); }), HasSubstr("line 2, column"));
  EXPECT_THAT(error_of([&] { Experiment::load(folder.path() / "absent.json"); }), HasSubstr("absent.json"));
}

TEST(Experiment, PathsAreRelativeToTheFile) {
  const Scratch folder;
  const fs::path file = folder.path() / "sub" / "e.json";
  write_file_atomically(file, R"({"schema":1,"data":{"path":"../rows.jsonl"},"model":{"path":"/abs"}})");
  Experiment e = Experiment::load(file);
  EXPECT_EQ(e.path("data.path"), folder.path() / "rows.jsonl");
  EXPECT_EQ(e.path("model.path"), "/abs");
  EXPECT_TRUE(e.path("model.tokenizer").empty());
  e.set("data.path", "here.jsonl");
  EXPECT_EQ(e.path("data.path"), fs::current_path() / "here.jsonl");
}

}  // namespace
}  // namespace mw::experiment
