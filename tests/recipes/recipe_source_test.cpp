// SPDX-License-Identifier: GPL-3.0-or-later
// data.source: a recipe without local data makes the same rows, prompts and steps from the downloaded dataset as the
// engine from a file, and refuses data that differ from those of the first load.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/data/dataset/record.h"
#include "core/data/dataset/row_reader.h"
#include "core/data/tokenizer/chat_template.h"
#include "core/experiment/hub_dataset.h"
#include "core/jobs/recipe_export.h"
#include "core/train/settings.h"
#include "tests/shipped.h"
#include "tests/store/store_fixture.h"

namespace mw::jobs {
namespace {

namespace fs = std::filesystem;
using model::Stack;
using testing::Contains;
using testing::HasSubstr;

const fs::path kSourceTemplates = fs::path(MW_RESOURCES) / "recipes";
const fs::path kSmallWorld = fs::path(MW_RESOURCES) / "instructions" / "small-world.json";

struct Ran {
  int status = 0;
  std::string out, error;
};
Ran python(const std::vector<std::string>& arguments, const fs::path& folder) {
  std::string command = "python3 -B";
  for (const std::string& a : arguments) command += " " + shell_quoted(a);
  command += " 2> " + shell_quoted((folder / "stderr").string());
  Ran ran;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return {.status = -1, .out = {}, .error = {}};
  std::array<char, 65536> bytes{};
  while (const size_t n = std::fread(bytes.data(), 1, bytes.size(), pipe)) ran.out.append(bytes.data(), n);
  ran.status = WEXITSTATUS(::pclose(pipe));
  ran.error = read_file(folder / "stderr");
  return ran;
}

bool has_jinja() {
  return python({"-c", "import jinja2"}, fs::temp_directory_path()).status == 0;
}

experiment::Experiment small_world(const std::vector<std::string>& sets) {
  experiment::Experiment e = experiment::Experiment::load(fs::path(MW_RESOURCES) / "examples" / "tiny-lora.json");
  experiment::apply_sets(e, sets);
  return e;
}

// Every text that the reader of the recipe tokenises, with its ids.
Json token_table(const experiment::Experiment& e) {
  const experiment::BoundExperiment config = e.config();
  const auto tokenizer = data::load_tokenizer(config.model.path);
  Json table{{"bos", tokenizer->bos()}, {"eos", tokenizer->eos()}, {"pad", tokenizer->pad()}, {"ids", Json::object()}};
  const auto add = [&](const std::string& text) { table["ids"][text] = tokenizer->encode(text); };
  const train::Settings settings = train::train_settings(config);
  const data::ChatTemplate& chat = settings.data.chat;
  add(std::string(data::start_of_turn(chat)));
  add(std::string(data::end_of_turn(chat)));
  data::RowReader reader(kSmallWorld);
  for (data::RawRow raw; reader.next(raw);) {
    const Json row = parse_json(raw.text, "row");
    const data::Record record = data::read_record(row, data::detect_format(row, settings.data), settings.data);
    for (const data::ChatSpan& span : data::render_chat(chat, std::get<data::Conversation>(record).messages))
      add(span.text);
  }
  for (const data::Example& example : data::load_dataset(settings.data, *tokenizer).eval) {
    add(example.prompt);
    add(example.answer);
  }
  return table;
}

Json as_json(const recipes::RowPlan& plan, const data::Tokenizer& tokenizer) {
  Json examples = Json::array(), rows = Json::array();
  for (const data::ExampleList* list : {&plan.train, &plan.held_out})
    for (size_t i = 0; i < list->size(); ++i) {
      const data::Example x = list->example(i, tokenizer);
      examples.push_back({{"ids", x.ids}, {"loss", x.loss}, {"prompt", x.prompt}, {"answer", x.answer}});
    }
  recipes::for_each_row(plan,
                        [&](std::span<const int> row) { rows.push_back(std::vector<int>(row.begin(), row.end())); });
  return {{"examples", std::move(examples)},
          {"rows", std::move(rows)},
          {"held_out", plan.held_out.size()},
          {"answers", recipes::answers_json(plan)}};
}

TEST(RecipeSource, MakesTheRowsOfTheEngine) {
  const std::vector<std::vector<std::string>> cases{
      {"train.epochs=0.5", "train.batch=8", "data.max_len=96", "data.chat=gemma3"},
      {"train.steps=30", "train.batch=4", "data.packing=true", "train.accumulation=2", "data.max_len=128",
       "data.chat=gemma3"},
      {"train.steps=5", "data.loss=all", "data.overlong=truncate", "data.max_len=40", "train.seed=7",
       "data.chat=gemma3"},
      {"train.steps=5", "data.loss=all", "data.overlong=truncate", "data.max_len=12", "data.dedup=true",
       "data.chat=gemma3"},                 // rows that are cut to their first words are equal
      {"train.steps=3", "train.batch=4"}};  // the template of the model's folder
  for (const auto& sets : cases) {
    SCOPED_TRACE(sets.front());
    if (sets.size() == 2 && !has_jinja()) continue;
    const experiment::Experiment local = small_world(sets);
    const recipes::RecipeInput engine = recipe_input(Stack::torchax, local, test::context(), kSourceTemplates);
    ASSERT_TRUE(engine.rows);
    experiment::Experiment remote = local;
    if (local.value("data.dedup").get<bool>()) {
      const train::Settings settings = train::train_settings(local.config());
      const auto report = data::load_dataset(settings.data, *data::load_tokenizer(local.path("model.path"))).report;
      ASSERT_GT(report.dropped_repeated, 0);
      ASSERT_GT(report.dropped_held_out, 0);
    }
    remote.erase("data.path");
    remote.set_value("data.source", "someone/small-world@main");
    const recipes::RecipeInput s = recipe_input(Stack::torchax, remote, test::context(), kSourceTemplates);
    EXPECT_FALSE(s.rows);
    EXPECT_THAT(s.remarks, Contains(HasSubstr("someone/small-world")));
    const test::Scratch scratch;
    const fs::path folder = scratch.path() / "recipe";
    recipes::write_recipe(s, kSourceTemplates, folder, recipes::Overwrite::refuse);
    write_file_atomically(scratch.path() / "table.json", token_table(local).dump());
    const auto read = [&](const fs::path& file) {
      return python({(fs::path(MW_FIXTURES).parent_path() / "recipes" / "source_rows.py").string(), folder.string(),
                     file.string(), (scratch.path() / "table.json").string()},
                    scratch.path());
    };
    const Ran ran = read(kSmallWorld);
    ASSERT_EQ(ran.status, 0) << ran.error;
    const Json made = parse_json(ran.out, "source_rows.py");
    const Json expected = as_json(*engine.rows, *data::load_tokenizer(local.path("model.path")));
    EXPECT_EQ(made["steps"], engine.values["train"]["steps"]);
    for (const char* key : {"examples", "rows", "held_out", "answers"}) EXPECT_EQ(made[key], expected[key]) << key;
    EXPECT_GT(made["lock"]["rows"].get<int>(), 100);
    EXPECT_EQ(made["lock"]["revision"], "main");
    EXPECT_EQ(made["lock"]["sha256"].get<std::string>().size(), 64u);

    EXPECT_EQ(read(kSmallWorld).status, 0) << "the same data again";
    Json changed = read_json(kSmallWorld);
    changed[0]["output"] = "something else";
    write_file_atomically(scratch.path() / "changed.json", changed.dump());
    const Ran refused = read(scratch.path() / "changed.json");
    EXPECT_NE(refused.status, 0);
    EXPECT_THAT(refused.error, HasSubstr("the data differ from those of the first load: sha256 is"));
  }
}

Json as_messages(const std::vector<data::Message>& messages) {
  Json out = Json::array();
  for (const data::Message& m : messages)
    out.push_back({m.role, m.text, m.fields.is_object() ? m.fields : Json::object()});
  return out;
}

// Templates with blocks for answers, with tools, and one that renders earlier answers without their thoughts.
TEST(RecipeSource, FindsTheAnswersOfAFolderTemplateAsTheEngine) {
  if (!has_jinja()) GTEST_SKIP() << "the recipes' template renderer is jinja2";
  const fs::path fixtures = fs::path(MW_FIXTURES) / "chat_templates";
  const std::vector<std::string> templates{
      read_file(fixtures / "turns.jinja"), read_file(fixtures / "tools.jinja"),
      data::load_chat_template(fs::path(MW_RESOURCES) / "base-model", options::ChatFormat::gemma3).folder()->text(),
      "{{ bos_token }}{% for m in messages %}{% if m.role == 'assistant' %}A:{% generation %} {{ m.content }};"
      "{% endgeneration %}{% else %}U:{{ m.content }};{% endif %}{% endfor %}{% if add_generation_prompt %}A:{% endif "
      "%}",
      "{% for m in messages %}<{{ m.role }}>{{ m.content.split('</t>')[-1] if not loop.last else m.content }}<end>\n{% "
      "endfor %}{% if add_generation_prompt %}<assistant><t></t>{% endif %}"};
  const Json tools =
      parse_json(R"([{"type": "function", "function": {"name": "sum", "description": "Adds – numbers"}}])", "t");
  const Json called =
      parse_json(R"({"tool_calls": [{"type": "function", "function": {"name": "sum", "arguments": {"a": 1}}}]})", "t");
  const std::vector<std::vector<data::Message>> talks{
      {{"user", " Hi "}, {"assistant", " Hello. "}},
      {{"system", "Be brief."}, {"user", "a"}, {"assistant", "<t>hm</t>b"}},
      {{"user", "a"}, {"assistant", "<t>b</t>b"}, {"user", "a"}, {"assistant", "Sûr 日"}, {"user", "c"}},
      {{"user", "1+1"}, {"assistant", "", called}, {"tool", "2"}, {"assistant", "2"}}};
  Json cases = Json::array(), expected = Json::array();
  for (const std::string& text : templates)
    for (const auto& talk : talks) {
      const Json given = talk.size() == 4 && talk[2].role == "tool" ? tools : Json();
      const Json tokens{{"bos_token", "<bos>"}, {"eos_token", "<eos>"}};
      cases.push_back({{{"text", text}, {"tool_text", ""}, {"tokens", tokens}}, as_messages(talk), given});
      const data::ChatTemplate chat(std::make_shared<const data::FolderTemplate>(text, "", tokens, "t"),
                                    options::ChatFormat::gemma3);
      Json spans = Json::array();
      try {
        for (const data::ChatSpan& span : data::render_chat(chat, talk, given))
          spans.push_back({span.text, span.assistant});
        spans.push_back(data::render_prompt(chat, talk, given));
      } catch (const Error&) {
        spans = "refused";
      }
      expected.push_back(std::move(spans));
    }
  const test::Scratch scratch;
  write_file_atomically(scratch.path() / "cases.json", cases.dump());
  const Ran ran = python({"-c",
                          "import json, sys; sys.path.insert(0, sys.argv[1]); import chat\n"
                          "def made(kept, talk, tools):\n"
                          "  try:\n"
                          "    t = chat.FolderTemplate(kept)\n"
                          "    return [list(s) for s in t.render(talk, tools)] + [t.render_prompt(talk, tools)]\n"
                          "  except chat.Refused:\n"
                          "    return 'refused'\n"
                          "print(json.dumps([made(*case) for case in json.load(open(sys.argv[2]))]))",
                          (kSourceTemplates / "common").string(), (scratch.path() / "cases.json").string()},
                         scratch.path());
  ASSERT_EQ(ran.status, 0) << ran.error;
  const Json found = parse_json(ran.out, "chat.py");
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(found[i], expected[i]) << cases[i].dump();
  EXPECT_GT(std::count_if(expected.begin(), expected.end(), [](const Json& e) { return e.is_array(); }), 10);
}

TEST(RecipeSource, RefusesAnIncompleteDownload) {
  experiment::Experiment e = small_world({});
  e.erase("data.path");
  e.set_value("data.source", "gsm8k");
  const recipes::RecipeInput s = recipe_input(Stack::trl_fsdp, e, test::context(), kSourceTemplates);
  EXPECT_EQ(s.values["data"]["columns"], (Json{{"completion", "answer"}, {"prompt", "question"}}));
  EXPECT_EQ(s.values["data"]["source"]["license"], "mit");
  const test::Scratch scratch;
  recipes::write_recipe(s, kSourceTemplates, scratch.path() / "recipe", recipes::Overwrite::refuse);
  write_file_atomically(scratch.path() / "part.jsonl", "{\"question\": \"1 + 1\", \"answer\": \"2\"}\n");
  write_file_atomically(scratch.path() / "table.json", R"({"bos": 2, "eos": 1, "pad": 0, "ids": {}})");
  const Ran ran = python({(fs::path(MW_FIXTURES).parent_path() / "recipes" / "source_rows.py").string(),
                          (scratch.path() / "recipe").string(), (scratch.path() / "part.jsonl").string(),
                          (scratch.path() / "table.json").string()},
                         scratch.path());
  EXPECT_NE(ran.status, 0);
  EXPECT_THAT(ran.error, HasSubstr("openai/gsm8k has 1 rows, expected 7473"));
}

TEST(RecipeSource, TheEngineSaysHowToObtainTheData) {
  experiment::Experiment e = small_world({});
  e.erase("data.path");
  e.set_value("data.source", "alpaca");
  EXPECT_EQ(e.config().data.rows, 52002);
  try {
    train::train_settings(e.config());
    FAIL() << "there is no file";
  } catch (const Error& error) {
    EXPECT_EQ(error.problem().id, "MISSING");
    EXPECT_THAT(error.problem().fix, HasSubstr("load_dataset('tatsu-lab/alpaca', split='train', revision='dce01c9b"));
  }
}

TEST(RecipeSource, NamesOfDatasetsAreChecked) {
  for (const experiment::HubDataset& d : experiment::known_datasets()) {
    EXPECT_EQ(experiment::parse_hub_dataset(d.name).id, d.id);
    EXPECT_EQ(d.revision.size(), 40u);
    EXPECT_FALSE(d.license.empty());
    EXPECT_THAT(d.facts, HasSubstr(d.id));
  }
  const experiment::HubDataset other = experiment::parse_hub_dataset("yahma/alpaca-cleaned@v1.0");
  EXPECT_EQ(other.id, "yahma/alpaca-cleaned");
  EXPECT_EQ(other.revision, "v1.0");
  EXPECT_TRUE(experiment::parse_hub_dataset("yahma/alpaca-cleaned").revision.empty());
  for (const char* bad : {"", "alpacas", "a/b/c", "/b", "a/", "a/b@", "a b/c", "../x", "a/'); import os", "a/b@'"})
    EXPECT_THROW(experiment::parse_hub_dataset(bad), Error) << bad;
}

}  // namespace
}  // namespace mw::jobs
