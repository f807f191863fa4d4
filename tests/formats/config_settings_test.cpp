// SPDX-License-Identifier: Apache-2.0
// Settings of scripts, notebooks, YAML and JSON, read without executing anything.
#include "core/formats/config/config_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/base/scratch.h"

namespace mw::formats {
namespace {

using testing::HasSubstr;

const ConfigSetting& setting(const std::vector<ConfigSetting>& settings, const std::string& section,
                             const std::string& name) {
  for (const ConfigSetting& s : settings)
    if (s.section == section && s.name == name) return s;
  throw std::runtime_error("no " + section + "." + name);
}
Json value(const std::vector<ConfigSetting>& settings, const std::string& section, const std::string& name) {
  const auto& found = setting(settings, section, name).value;
  return found ? *found : Json("(not read)");
}
std::vector<ConfigSetting> python(const std::string& text) {
  return read_python_settings(text, "train.py");
}
std::string error_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    return error.problem().id + ": " + error.what();
  }
  return "no error";
}

TEST(PythonSettings, ReadsLiteralsOfEveryKind) {
  const auto s = python(R"(
args = SFTConfig(
    learning_rate=2e-4, steps=1_000, hexed=0x10, negative=-3, on=True, nothing=None,
    text="a" 'b' r'\n', escaped="tab\tq\"\u00e9", many=[1, 2.5, "x",], pair=(1,), empty=(), table={"k": [True]},
    kind=torch.bfloat16, task=TaskType.CAUSAL_LM,
)
)");
  EXPECT_EQ(value(s, "SFTConfig", "learning_rate"), 2e-4);
  EXPECT_EQ(value(s, "SFTConfig", "steps"), 1000);
  EXPECT_EQ(value(s, "SFTConfig", "hexed"), 16);
  EXPECT_EQ(value(s, "SFTConfig", "negative"), -3);
  EXPECT_EQ(value(s, "SFTConfig", "on"), true);
  EXPECT_TRUE(value(s, "SFTConfig", "nothing").is_null());
  EXPECT_EQ(value(s, "SFTConfig", "text"), "ab\\n");
  EXPECT_EQ(value(s, "SFTConfig", "escaped"), "tab\tq\"\u00e9");
  EXPECT_EQ(value(s, "SFTConfig", "many"), Json::parse(R"([1, 2.5, "x"])"));
  EXPECT_EQ(value(s, "SFTConfig", "pair"), Json::array({1}));
  EXPECT_EQ(value(s, "SFTConfig", "empty"), Json::array());
  EXPECT_EQ(value(s, "SFTConfig", "table"), Json::parse(R"({"k": [true]})"));
  EXPECT_EQ(value(s, "SFTConfig", "kind"), "bfloat16");
  EXPECT_EQ(value(s, "SFTConfig", "task"), "CAUSAL_LM");
  EXPECT_EQ(setting(s, "SFTConfig", "text").place.line, 4);
  EXPECT_EQ(to_text(setting(s, "SFTConfig", "kind").place), "train.py, line 5");
}

TEST(PythonSettings, ComputedValuesAreListedAndNeverGuessed) {
  const auto s = python(R"(
import os
rate = 1e-4
lr = rate
twice = 1
twice = 2
modules = ["q_proj"]
modules.append("v_proj")
def build(size=4):
    return SFTConfig(output_dir=f"{lr}-out", steps=2 * 8, seed=int(os.environ["SEED"]), learning_rate=lr,
                     batch=twice, targets=modules, max_length=size, plain=f"same", deferred=lambda: 1, **extra)
)");
  EXPECT_EQ(value(s, "SFTConfig", "learning_rate"), 1e-4);  // through two names that are bound once
  EXPECT_EQ(value(s, "SFTConfig", "plain"), "same");        // formats nothing
  for (const char* name : {"output_dir", "steps", "seed", "batch", "targets", "max_length", "deferred", "**"}) {
    EXPECT_FALSE(setting(s, "SFTConfig", name).value) << name;
    EXPECT_FALSE(setting(s, "SFTConfig", name).reason.empty()) << name;
  }
  EXPECT_EQ(setting(s, "SFTConfig", "seed").reason, "a call");
  EXPECT_EQ(setting(s, "SFTConfig", "seed").text, "int(os.environ[\"SEED\"])");
}

TEST(PythonSettings, NamesThatAreBoundInAnyOtherWayAreNotConstants) {
  for (const char* more :
       {"for lr in rates: pass", "with open(f) as lr: pass", "lr += 1", "import lr", "def f(lr): pass",
        "if (lr := 3): pass", "[x for lr in y]", "a, lr = 1, 2", "global lr", "del lr", "f(lambda lr: 2)",
        "lr: float = 2.0", "a = lr = 5", "try:\n  pass\nexcept E as lr:\n  pass"}) {
    const auto s = python(std::string("lr = 1\n") + more + "\nSFTConfig(learning_rate=lr)\n");
    EXPECT_FALSE(setting(s, "SFTConfig", "learning_rate").value) << more;
  }
  const auto s = python("lr: float = 1\nf(lr=3)\nx = lr == 2\nSFTConfig(learning_rate=lr)\n");
  EXPECT_EQ(value(s, "SFTConfig", "learning_rate"), 1);
}

TEST(PythonSettings, FollowsObjectsAndDatasets) {
  const auto s = python(R"(
train = load_dataset("org/rows", split="train")
train = train.map(render)
valid = load_dataset("json", data_files="v.jsonl")
model = AutoModelForCausalLM.from_pretrained("google/gemma-3-1b-it")
args = SFTConfig(max_length=64)
args.max_length = 128
args.seed = pick()
trainer = SFTTrainer(model=model, args=args, train_dataset=train, eval_dataset=valid, peft_config=LoraConfig(r=4))
)");
  EXPECT_EQ(value(s, "load_dataset", "#1"), "org/rows");
  EXPECT_EQ(value(s, "AutoModelForCausalLM.from_pretrained", "#1"), "google/gemma-3-1b-it");
  EXPECT_EQ(value(s, "LoraConfig", "r"), 4);
  EXPECT_EQ(s.back().name, "r");
  EXPECT_EQ(setting(s, "dataset", "map").place.line, 3);
  EXPECT_FALSE(setting(s, "SFTTrainer", "train_dataset").value);  // bound twice
  EXPECT_FALSE(setting(s, "SFTConfig", "seed").value);
  int lengths = 0;
  for (const ConfigSetting& each : s) {
    lengths += each.name == "max_length";
    EXPECT_NE(each.name, "eval_dataset");  // as it was loaded
    EXPECT_NE(each.name, "model");
  }
  EXPECT_EQ(lengths, 2);
}

TEST(PythonSettings, WhatIsNotPythonIsOneError) {
  EXPECT_THAT(error_of([] { python("x = 'open\n"); }), HasSubstr("PORT: train.py, line 1: the string is not closed"));
  EXPECT_THAT(error_of([] { python("f(\n"); }), HasSubstr("line 1: the bracket is not closed"));
  EXPECT_THAT(error_of([] { python("\nf(]\n"); }), HasSubstr("line 2: the bracket was not opened"));
  EXPECT_THAT(error_of([] { python("a $ b"); }), HasSubstr("'$' is not expected"));
  EXPECT_THAT(error_of([] { python(std::string("a\0b", 3)); }), HasSubstr("binary"));
  EXPECT_THAT(error_of([] { python(std::string(100, '(') + std::string(100, ')')); }), HasSubstr("nested deeper"));
  EXPECT_THAT(error_of([] { python(std::string(kMaxConfigText + 1, ' ')); }), HasSubstr("larger than 4 MiB"));
}

TEST(PythonSettings, StringsOfEveryForm) {
  const auto s = python("SFTConfig(a='''x\ny''', b=f'{x['k']}', c=rb'x', d='\\N{DASH}', e=u'z', f=f'{{}}')  # 'open\n");
  EXPECT_EQ(value(s, "SFTConfig", "a"), "x\ny");
  for (const char* name : {"b", "c", "d", "f"}) EXPECT_FALSE(setting(s, "SFTConfig", name).value) << name;
  EXPECT_EQ(value(s, "SFTConfig", "e"), "z");
}

TEST(Notebooks, CellsAreOneScriptAndPlacesNameTheCell) {
  const auto s = read_notebook_settings(R"nb({"cells": [
    {"cell_type": "markdown", "source": ["SFTConfig(seed=1)"]},
    {"cell_type": "code", "source": ["%pip install trl\n", "!ls $HOME\n", "rate = 3e-4\n"]},
    {"cell_type": "code", "source": "\nSFTConfig(learning_rate=rate)"}]})nb",
                                        "a.ipynb");
  ASSERT_EQ(s.size(), 1u);
  ASSERT_TRUE(s[0].value);
  EXPECT_EQ(*s[0].value, 3e-4);
  EXPECT_EQ(to_text(s[0].place), "a.ipynb, cell 3, line 2");
  EXPECT_THAT(error_of([] { read_notebook_settings("{}", "a.ipynb"); }), HasSubstr("cells"));
  EXPECT_THAT(error_of([] { read_notebook_settings("[]", "a.ipynb"); }), HasSubstr("no JSON object"));
}

TEST(Yaml, ReadsSectionsWithLines) {
  const auto s = read_yaml_settings(
      "# comment\ndistributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  deep: [a, {b: 1}]\ndowncast: 'no'\nflag: "
      "no\nrate: 1e-4\nname: \"8\"\nnone: ~\nrank_pattern: {q_proj: 8}\n",
      "fsdp.yaml");
  EXPECT_EQ(value(s, "", "distributed_type"), "FSDP");
  EXPECT_EQ(value(s, "fsdp_config", "fsdp_version"), 2);
  EXPECT_EQ(setting(s, "fsdp_config", "fsdp_version").place.line, 4);
  EXPECT_EQ(value(s, "fsdp_config", "deep"), Json::parse(R"(["a", {"b": 1}])"));
  EXPECT_EQ(value(s, "", "downcast"), "no");
  EXPECT_EQ(value(s, "", "flag"), false);
  EXPECT_EQ(value(s, "", "rate"), 1e-4);
  EXPECT_EQ(value(s, "", "name"), "8");
  EXPECT_TRUE(value(s, "", "none").is_null());
  EXPECT_EQ(value(s, "", "rank_pattern"), Json::parse(R"({"q_proj": 8})"));
}

TEST(Yaml, AliasesAndTagsAreNotReadAndNothingIsExpanded) {
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 60; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before + "]\n";
  }
  const auto s = read_yaml_settings(bomb, "bomb.yaml");
  EXPECT_EQ(s.size(), 60u);
  EXPECT_EQ(value(s, "", "a0"), Json::parse(R"(["x", "x"])"));
  EXPECT_FALSE(setting(s, "", "a59").value);
  EXPECT_EQ(setting(s, "", "a59").reason, "an alias");
  const auto t = read_yaml_settings("x: !!python/object:os.system ls\ny: 1\n", "t.yaml");
  EXPECT_FALSE(setting(t, "", "x").value);
  EXPECT_EQ(value(t, "", "y"), 1);
}

TEST(Yaml, WhatIsNoMapIsOneError) {
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "empty"},
           {"[1, 2]", "no map"},
           {"word", "no map"},
           {"a: 1\na: 2\n", "line 2: the key 'a' is given twice"},
           {"a: [1\n", "not valid YAML"},
           {"a: 1\n---\nb: 2\n", "several documents"},
           {"? [a]\n: 1\n", "a key is a list"},
           {"a: " + std::string(100, '[') + std::string(100, ']'), "nested deeper"}})
    EXPECT_THAT(error_of([&text = text] { read_yaml_settings(text, "x.yaml"); }), HasSubstr(part)) << text;
}

TEST(JsonSettings, ReadsSectionsWithLines) {
  const auto s = read_json_settings(
      "{\n \"r\": 8,\n \"zero_optimization\": {\n  \"stage\": 3\n },\n \"list\": [{\"no\": 1}],\n"
      " \"rank_pattern\": {\"a\": 2},\n \"loss\": NaN\n}\n",
      "x.json");
  EXPECT_EQ(value(s, "", "r"), 8);
  EXPECT_EQ(setting(s, "", "r").place.line, 2);
  EXPECT_EQ(setting(s, "zero_optimization", "stage").place.line, 4);
  EXPECT_EQ(setting(s, "", "rank_pattern").place.line, 7);
  EXPECT_EQ(value(s, "", "list"), Json::parse(R"([{"no": 1}])"));
  EXPECT_TRUE(value(s, "", "loss").is_null());
}

TEST(ConfigFiles, AreToldApartByTheirEndings) {
  const test::Scratch scratch;
  EXPECT_EQ(read_config_file(scratch.put("a.py", "SFTConfig(seed=1)")).format, ConfigFormat::python);
  EXPECT_EQ(read_config_file(scratch.put("a.yml", "a: 1")).format, ConfigFormat::yaml);
  EXPECT_EQ(read_config_file(scratch.put("a.json", "{}")).format, ConfigFormat::json);
  EXPECT_EQ(read_config_file(scratch.put("a.ipynb", "{\"cells\": []}")).format, ConfigFormat::notebook);
  EXPECT_THAT(error_of([&] { read_config_file(scratch.put("training_args.bin", "PK")); }), HasSubstr("to_json_string"));
  EXPECT_THAT(error_of([&] { read_config_file(scratch / "missing.py"); }), HasSubstr("SYSTEM"));
  EXPECT_THAT(error_of([&] { read_config_file(scratch.put("utf16.py", "\xFF\xFEx")); }), HasSubstr("TEXT-ENCODING"));
}

}  // namespace
}  // namespace mw::formats
