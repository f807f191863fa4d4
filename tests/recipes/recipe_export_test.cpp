// SPDX-License-Identifier: GPL-3.0-or-later
// Recipes: what the scripts read is what the engine does, whatever the user's words are; and no rule about versions,
// exports, adapters and loading that the experiment trips is tripped by its recipe.
#include "core/jobs/recipe_export.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/lint/check.h"
#include "core/model/catalogue.h"
#include "core/plan/document/diagnostics.h"
#include "core/train/settings.h"
#include "tests/shipped.h"
#include "tests/store/store_fixture.h"

namespace mw::jobs {
namespace {

namespace fs = std::filesystem;
using model::Stack;
using test::Scratch;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Sets = std::vector<std::string>;

const fs::path kTemplates = fs::path(MW_RESOURCES) / "recipes";

experiment::Experiment shipped(const std::string& name, const Sets& sets = {}) {
  experiment::Experiment e = experiment::Experiment::load(fs::path(MW_RESOURCES) / "examples" / name);
  experiment::apply_sets(e, sets);
  return e;
}

recipes::RecipeInput subject(Stack kind, const experiment::Experiment& e) {
  return recipe_input(kind, e, test::context(), kTemplates);
}

std::string content(const std::vector<recipes::File>& files, const std::string& path) {
  for (const recipes::File& f : files)
    if (f.path == path) return f.content;
  return "no " + path;
}

std::string bash(const std::string& script) {
  std::string out;
  std::FILE* pipe = ::popen(("bash -c " + shell_quoted(script)).c_str(), "r");
  if (!pipe) return "no bash";
  std::array<char, 4096> bytes{};
  while (const size_t n = std::fread(bytes.data(), 1, bytes.size(), pipe)) out.append(bytes.data(), n);
  ::pclose(pipe);
  return out;
}

TEST(RecipeQuote, QuotesEveryTextAsOneShellWord) {
  for (const std::string& text :
       {std::string("plain"), std::string("it's"), std::string("a b\tc\nd"),
        std::string("$(touch /tmp/x) `id` \\ \" ; & |"), std::string("''\\''"), std::string("--flag"),
        std::string("\xc3\xa4\xe2\x82\xac *?[x]{a,b}~!"), std::string()})
    EXPECT_EQ(bash("printf %s " + shell_quoted(text)), text);
}

TEST(Recipe, UserTextIsQuotedInEveryFile) {
  const std::string name = "it's \"my\" $(touch pwned) `x` | <b>\n# title";
  for (const Stack kind : recipes::kRecipes) {
    experiment::Experiment e = shipped(!model::serves(kind) ? "tiny-lora.json" : "tiny-serve.json", {"train.steps=1"});
    e.set_value("name", name);
    const auto files = recipes::recipe_files(subject(kind, e), kTemplates);
    EXPECT_EQ(parse_json(content(files, "settings.json"), "settings")["name"], name);
    EXPECT_EQ(parse_json(content(files, "experiment.json"), "experiment")["name"], name);
    EXPECT_THAT(content(files, "README.md"), HasSubstr("# it's \"my\" $(touch pwned) \\`x\\` \\| \\<b\\> \\# title\n"));
    for (const recipes::File& f : files) {  // and nowhere else
      if (f.path.ends_with(".json") || f.path == "README.md") continue;
      EXPECT_THAT(f.content, Not(HasSubstr("pwned"))) << f.path;
    }
  }
  experiment::Experiment e = shipped("tiny-serve.json");
  const auto files = [&] {
    recipes::RecipeInput s = subject(Stack::vllm_gpu, e);
    s.given.path = "/a b/it's $(touch pwned)";
    return recipes::recipe_files(s, kTemplates);
  }();
  EXPECT_EQ(bash(content(files, "settings.sh") + "\nprintf '%s|%s' \"$MODEL_FOLDER\" \"${SERVE_FLAGS[1]}\""),
            "/a b/it's $(touch pwned)|1");
}

TEST(Recipe, RefusesSoftwareAndOptionsWithoutARecipe) {
  const auto refusal = [](Stack kind, const experiment::Experiment& e) -> Problem {
    try {
      subject(kind, e);
    } catch (const Error& error) {
      return error.problem();
    }
    return {};
  };
  const Problem sglang = refusal(Stack::vllm_gpu, shipped("tiny-serve.json", {"serve.stack=sglang"}));
  EXPECT_EQ(sglang.place, "serve.stack");
  EXPECT_EQ(sglang.expected, "vllm-tpu or vllm-gpu");
  EXPECT_EQ(refusal(Stack::tunix, shipped("tiny-lora.json", {"train.stack=megatron"})).place, "train.stack");
  EXPECT_EQ(refusal(Stack::tunix, shipped("tiny-lora.json", {"train.products=fp8"})).place, "train.products");
  EXPECT_EQ(refusal(Stack::trl_fsdp, shipped("tiny-lora.json", {"train.offload=host"})).place, "train.offload");
  EXPECT_EQ(refusal(Stack::vllm_tpu, shipped("tiny-serve.json", {"serve.weight_dtype=fp8"})).place,
            "serve.weight_dtype");
  const auto files = recipes::recipe_files(
      subject(Stack::vllm_gpu, shipped("tiny-serve.json", {"serve.weight_dtype=fp8"})), kTemplates);
  EXPECT_THAT(content(files, "settings.sh"), HasSubstr("'--quantization' 'fp8'"));
}

TEST(Recipe, SendsAsManyRequestsAsTheSweepAtEachLength) {
  const auto files = recipes::recipe_files(
      subject(Stack::vllm_gpu,
              shipped("tiny-serve.json", {"sweep.request_rates=[1]", "sweep.input_lens=[64,128]",
                                          "sweep.num_prompts=30", "sweep.num_prompts_at=[\"128:6\"]"})),
      kTemplates);
  const Scratch folder;
  for (const char* file : {"settings.sh", "bench.sh"})
    write_file_atomically(folder.path() / file, content(files, file));
  const std::string commands = bash("DRY_RUN=1 bash " + shell_quoted((folder.path() / "bench.sh").string()));
  EXPECT_THAT(commands, HasSubstr("--random-input-len 64 --random-output-len"));
  EXPECT_THAT(commands, testing::ContainsRegex("input-len 64 .*--num-prompts 30 "));
  EXPECT_THAT(commands, testing::ContainsRegex("input-len 128 .*--num-prompts 6 "));
}

TEST(Recipe, SharesOutExpertsOverEp) {
  const auto files = recipes::recipe_files(
      subject(Stack::vllm_gpu,
              shipped("paper-serve-2xh100.json", {"model.id=gemma4-26b-a4b", "mesh.tp=2", "mesh.ep=4"})),
      kTemplates);
  EXPECT_THAT(content(files, "settings.sh"),
              testing::AllOf(HasSubstr("'--tensor-parallel-size' '2'"),
                             HasSubstr("'--data-parallel-size' '4' '--enable-expert-parallel'")));
  EXPECT_THROW(  // no experts
      recipes::recipe_files(subject(Stack::vllm_gpu, shipped("tiny-serve.json", {"mesh.tp=2", "mesh.ep=4"})),
                            kTemplates),
      Error);
}

TEST(Recipe, ServesOnSeveralHostsThroughRay) {
  const auto files = recipes::recipe_files(subject(Stack::vllm_gpu, shipped("tiny-serve.json")), kTemplates);
  const Scratch folder;
  for (const char* file : {"settings.sh", "image.sh", "serve.sh", "ray.sh", "requirements.txt"})
    write_file_atomically(folder.path() / file, content(files, file));
  const auto command = [&](const std::string& environment) {
    return bash("env -u SLURM_NODEID DRY_RUN=1 " + environment + " bash " +
                shell_quoted((folder.path() / "serve.sh").string()) + " 2>&1");
  };
  EXPECT_THAT(command(""), testing::AllOf(HasSubstr("--entrypoint vllm "), testing::Not(HasSubstr("ray.sh"))));
  EXPECT_THAT(command("HOSTS=2 HOST_RANK=1 HEAD_ADDRESS=10.0.0.1"),
              testing::ContainsRegex("--entrypoint bash [^ ]+ /ray.sh 1 2 10.0.0.1:6379 300 serve "));
  EXPECT_THAT(command("HOSTS=2 HOST_RANK=0 HEAD_ADDRESS=head:7000 JOIN_TIMEOUT_S=60"),
              HasSubstr("/ray.sh 0 2 head:7000 60 serve "));
  EXPECT_THAT(command("HOSTS=2 HEAD_ADDRESS=10.0.0.1"), HasSubstr("set HOST_RANK"));
  EXPECT_THAT(command("HOSTS=2 HOST_RANK=0"), HasSubstr("set HEAD_ADDRESS"));
}

// data/rows.safetensors from all examples and rows in memory.
void write_from_memory(const fs::path& file, const data::Dataset& dataset, const std::vector<std::vector<int>>& rows) {
  std::vector<std::int32_t> ids, row_examples, held_out;
  std::vector<std::uint8_t> loss;
  std::vector<std::int64_t> starts{0}, row_starts{0};
  for (const auto* examples : {&dataset.train, &dataset.eval})
    for (const data::Example& e : *examples) {
      ids.insert(ids.end(), e.ids.begin(), e.ids.end());
      loss.insert(loss.end(), e.loss.begin(), e.loss.end());
      starts.push_back(std::ssize(ids));
    }
  for (const auto& row : rows) {
    row_examples.insert(row_examples.end(), row.begin(), row.end());
    row_starts.push_back(std::ssize(row_examples));
  }
  for (size_t i = dataset.train.size(); i < starts.size() - 1; ++i) held_out.push_back(static_cast<int>(i));
  using formats::TensorDType;
  const auto tensor = [](const char* name, TensorDType type, const auto& values) {
    return formats::TensorData{name, type, {std::ssize(values)}, std::as_bytes(std::span(values))};
  };
  formats::write_safetensors(
      file, std::vector{tensor("ids", TensorDType::i32, ids), tensor("row_examples", TensorDType::i32, row_examples),
                        tensor("loss", TensorDType::u8, loss), tensor("held_out", TensorDType::i32, held_out),
                        tensor("row_starts", TensorDType::i64, row_starts),
                        tensor("example_starts", TensorDType::i64, starts)});
}

// The engine's own batches, from the file that the scripts read.
TEST(Recipe, RowsAreTheBatchesOfTheEngine) {
  for (const char* packing : {"false", "true"}) {
    const experiment::Experiment e =
        shipped("tiny-lora.json", {"train.steps=40", "train.accumulation=2", "train.batch=8",
                                   std::string("data.packing=") + packing, "data.max_len=96"});
    const recipes::RecipeInput s = subject(Stack::tunix, e);
    ASSERT_TRUE(s.rows);
    const auto tokenizer = data::load_tokenizer(e.path("model.path"));
    const train::Settings settings = train::train_settings(e.config());
    const data::Dataset dataset = data::load_dataset(settings.data, *tokenizer);
    data::BatchStream stream(dataset.train, train::batch_options(settings), tokenizer->pad());
    std::vector<std::vector<int>> rows;
    recipes::for_each_row(*s.rows, [&](std::span<const int> row) { rows.emplace_back(row.begin(), row.end()); });
    ASSERT_EQ(rows.size(), 40u * 2 * 8);
    for (int batch = 0; batch < 80; ++batch) {
      const data::Batch engine = stream.next();
      for (int r = 0; r < 8; ++r) {
        std::vector<int> ids;
        for (const int example : rows[static_cast<size_t>(batch * 8 + r)]) {
          const auto& more = dataset.train[static_cast<size_t>(example)].ids;
          ids.insert(ids.end(), more.begin(), more.end());
        }
        ASSERT_LE(ids.size(), static_cast<size_t>(engine.len));
        const auto begin = engine.ids.begin() + r * engine.len;
        ASSERT_TRUE(std::equal(ids.begin(), ids.end(), begin)) << "batch " << batch << ", row " << r;
        ASSERT_TRUE(std::all_of(begin + static_cast<std::ptrdiff_t>(ids.size()), begin + engine.len,
                                [&](int id) { return id == tokenizer->pad(); }));
      }
    }
    EXPECT_EQ(s.rows->held_out.size(), dataset.eval.size());
    const Scratch folder;
    recipes::write_rows(folder.path() / "rows.safetensors", *s.rows);
    write_from_memory(folder.path() / "expected.safetensors", dataset, rows);
    EXPECT_EQ(read_file(folder.path() / "rows.safetensors"), read_file(folder.path() / "expected.safetensors"));
  }
}

TEST(Recipe, WritesTheFolderOnceAndKeepsOtherFiles) {
  const Scratch folder;
  const recipes::RecipeInput s = subject(Stack::tunix, shipped("tiny-lora.json", {"train.steps=2"}));
  const auto write = [&](recipes::Overwrite o) { return recipes::write_recipe(s, kTemplates, folder.path(), o); };
  const auto files = write(recipes::Overwrite::refuse);
  for (const char* name : {"README.md", "train.py", "settings.json", "requirements.txt", "data/rows.safetensors"})
    EXPECT_THAT(files, Contains(name));
  write_file_atomically(folder.path() / "out" / "mine.txt", "mine");
  EXPECT_EQ(write(recipes::Overwrite::refuse), files);  // as it was written: again
  EXPECT_EQ(read_file(folder.path() / "out" / "mine.txt"), "mine");
  write_file_atomically(folder.path() / "train.py", "changed");
  EXPECT_THROW(write(recipes::Overwrite::refuse), Error);
  EXPECT_EQ(read_file(folder.path() / "train.py"), "changed");
  write(recipes::Overwrite::changed_files);
  EXPECT_NE(read_file(folder.path() / "train.py"), "changed");
  const Scratch other;
  write_file_atomically(other.path() / "thesis.tex", "years");
  EXPECT_THROW(recipes::write_recipe(s, kTemplates, other.path(), recipes::Overwrite::changed_files), Error);
  EXPECT_EQ(std::distance(fs::directory_iterator(other.path()), fs::directory_iterator()), 1);
}

// Every size of the catalogue can be said to Tunix, field by field, and every tensor has its parameter.
TEST(Recipe, EveryGemmaOfTheCatalogueHasATunixRecipe) {
  for (const std::string& id : model::catalogue_ids()) {
    experiment::Experiment e = shipped("paper-train-v5p-8.json");
    e.set_value("model.id", id);
    // Tunix has no Gemma 2 27B, and its code no place for that model's attention scale.
    if (model::is_planning_only(model::catalogue_config(id)) || id == "gemma2-27b") {
      EXPECT_THROW(recipes::recipe_files(subject(Stack::tunix, e), kTemplates), Error) << id;
      continue;
    }
    const Json settings =
        parse_json(content(recipes::recipe_files(subject(Stack::tunix, e), kTemplates), "settings.json"), id);
    EXPECT_EQ(settings["model"]["tunix"]["config"]["num_embed"], model::catalogue_config(id).vocab);
    EXPECT_EQ(settings["model"]["tensors"].size(),
              model::TensorInventory(model::catalogue_config(id)).tensors().size());
    EXPECT_THAT(settings["model"]["hub"].get<std::string>(), testing::StartsWith("google/gemma-"));
  }
  const auto paper_with = [](const Sets& sets) {
    return subject(Stack::tunix, shipped("paper-train-v5p-8.json", sets));
  };
  EXPECT_THAT(paper_with({}).remarks, Contains(HasSubstr("COV-1")));  // the paper's own expression is kept, and said
  const Json paper =
      parse_json(content(recipes::recipe_files(paper_with({"lora.module_path="}), kTemplates), "settings.json"), "");
  EXPECT_THAT(paper["lora"]["module_path"].get<std::string>(), HasSubstr("k_einsum"));
  EXPECT_EQ(paper["model"]["hub"], "google/gemma-4-31B-it");
}

std::vector<std::string> ids_of(const experiment::Experiment& e) {
  std::vector<std::string> ids;
  for (const plan::Diagnostic& d : plan::diagnose(e, test::context()).found) ids.push_back(d.problem.id);
  return ids;
}

struct Trap {
  const char* rule;
  Stack kind;
  Sets sets;
};
class Traps : public testing::TestWithParam<Trap> {};

TEST_P(Traps, TriggersForTheExperimentButNotForItsRecipe) {
  const experiment::Experiment e = shipped("paper-train-v5p-8.json", GetParam().sets);
  EXPECT_THAT(ids_of(e), Contains(GetParam().rule));
  const experiment::Experiment made = as_recipe(GetParam().kind, e, kTemplates);
  EXPECT_THAT(ids_of(made), Not(Contains(GetParam().rule)));
  for (const std::string& remark : subject(GetParam().kind, e).remarks)
    EXPECT_THAT(remark, Not(HasSubstr(GetParam().rule)));
  for (const auto& unchecked : plan::diagnose(made, test::context()).unchecked)
    EXPECT_NE(unchecked.id, "VER-1") << "versions are pinned";
}

const Sets kGpu{"target.id=4xh100", "mesh.fsdp=4", "mesh.tp=1", "train.stack=trl-fsdp", "lora.module_path="};
Sets on_gpu(const Sets& more) {
  Sets all = kGpu;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Traps,
    testing::Values(
        Trap{"VER-1", Stack::tunix, {"stack.versions=flax==0.12.4"}},
        Trap{"VER-1", Stack::tunix, {"stack.versions=jax==0.7.2"}},
        Trap{"VER-1", Stack::tunix, {"stack.versions=safetensors==0.8.0"}},
        Trap{"LOAD-2", Stack::tunix, {"model.id=gemma3-4b"}}, Trap{"LOAD-3", Stack::tunix, {"model.id=gemma2-9b"}},
        Trap{"EXP-1", Stack::tunix, {"export.merge=tunix"}},
        Trap{"EXP-2",
             Stack::tunix,
             {"model.id=gemma3-1b", "export.merge=tunix", std::string("export.out=") + MW_RESOURCES}},
        Trap{"EXP-3", Stack::tunix, {"export.merge=meshwright", "export.alpha=16"}},
        Trap{"EXP-4", Stack::tunix, {"model.id=gemma3-1b", "export.merge=tunix", "stack.versions=google-tunix==0.1.7"}},
        Trap{"PEFT-1", Stack::trl_fsdp, on_gpu({})}),
    [](const auto& i) { return std::string(i.param.rule).substr(0, 3) + std::to_string(i.index); });

// LOAD-1: names that Tunix's loader does not find are found by the recipe's own map.
TEST(Recipe, FilesThatTunixDoesNotFindAreLoadedByName) {
  experiment::Experiment e = shipped("tiny-lora.json");
  e.set_value("model.path", (fs::path(MW_FIXTURES) / "gemma4_tiny").string());
  e.erase("data.path");
  e.set_value("train.stack", "tunix");
  EXPECT_THAT(ids_of(e), Contains("LOAD-1"));
  const recipes::RecipeInput s = subject(Stack::tunix, e);
  EXPECT_THAT(s.remarks, Not(Contains(HasSubstr("LOAD-1"))));
  const Json tensors =
      parse_json(content(recipes::recipe_files(s, kTemplates), "settings.json"), "")["model"]["tensors"];
  const formats::SafetensorsFile file(fs::path(MW_FIXTURES) / "gemma4_tiny" / "model.safetensors");
  for (const Json& t : tensors) EXPECT_TRUE(file.find("model." + t[2].get<std::string>())) << t;
}

// PEFT-2 and PEFT-3: vLLM gets merged weights. The 31B's global layers take V from K; its class has a language_model.
TEST(Recipe, ServersGetMergedWeights) {
  const std::string adapter = (fs::path(MW_FIXTURES) / "gemma3_tiny" / "lora").string();  // of "model.layers."
  const std::array<std::pair<Stack, const char*>, 2> servers{
      {{Stack::vllm_gpu, "paper-serve-2xh100.json"}, {Stack::vllm_tpu, "paper-serve-v6e-8.json"}}};
  for (const auto& [kind, example] : servers) {
    const experiment::Experiment e =
        shipped(example, {"export.serve_as=adapter", "lora.targets=q_proj,k_proj", "lora.adapter=" + adapter});
    EXPECT_THAT(ids_of(e), Contains("PEFT-2")) << example;
    EXPECT_THAT(ids_of(e), Contains("PEFT-3")) << example;
    const experiment::Experiment made = as_recipe(kind, e, kTemplates);
    EXPECT_EQ(made.value("export.serve_as").get<std::string>(), "merged");
    EXPECT_THAT(ids_of(made), Not(Contains(AnyOf("PEFT-2", "PEFT-3"))));
    for (const std::string& remark : subject(kind, e).remarks) EXPECT_THAT(remark, Not(HasSubstr("PEFT-")));
  }
}

// The mesh, and how it lies on the slices, is that of the plan: also without a mesh, and with placements.
TEST(Recipe, HasTheMeshOfThePlanOnSeveralSlices) {
  const auto settings = [](Stack kind, const char* document) {
    const experiment::Experiment e = experiment::Experiment::from_json(parse_json(document, "test"));
    const Json found = parse_json(content(recipes::recipe_files(subject(kind, e), kTemplates), "settings.json"), "");
    return found["mesh"].dump() + found["slices"].dump();
  };
  const char* no_mesh = R"({"model": {"id": "gemma3-4b"}, "target": {"id": "2xv5p-8"}, "train": {"batch": 8}})";
  EXPECT_EQ(settings(Stack::tunix, no_mesh), R"({"fsdp":2,"tp":4}{"fsdp":2,"tp":1})");
  EXPECT_EQ(settings(Stack::torchax, no_mesh), R"({"fsdp":2,"tp":4}{"fsdp":2,"tp":1})");
  const char* placed = R"({"model": {"id": "gemma3-4b"}, "target": {"id": "2xv5p-8"}, "train": {"batch": 8},
    "mesh": {"fsdp": 4, "tp": 2}, "sharding": {"places": ["fsdp = 1, 2"]}})";
  EXPECT_EQ(settings(Stack::torchax, placed), R"({"fsdp":4,"tp":2}{"fsdp":1,"tp":2})");
  const char* one_slice = R"({"model": {"id": "gemma3-4b"}, "target": {"id": "v5p-8"}, "train": {"batch": 8}})";
  EXPECT_EQ(settings(Stack::tunix, one_slice), R"({"fsdp":1,"tp":4}{"fsdp":1,"tp":1})");
}

// An expression for Qwix's names is nothing to PEFT: the targets count there.
TEST(Recipe, AnExpressionOfAnotherLibraryIsRegenerated) {
  const experiment::Experiment e =
      shipped("tiny-lora.json", {"lora.module_path=.*q_einsum|.*kv_einsum", "lora.targets=q_proj,k_proj"});
  const auto lora = [&](Stack kind) {
    return parse_json(content(recipes::recipe_files(subject(kind, e), kTemplates), "settings.json"), "")["lora"];
  };
  EXPECT_EQ(lora(Stack::tunix)["module_path"], ".*q_einsum|.*kv_einsum");
  EXPECT_EQ(lora(Stack::trl_fsdp)["module_path"], R"(.*\.(q_proj|k_proj))");
  EXPECT_EQ(lora(Stack::trl_fsdp)["modules"].size(), 12u);
  EXPECT_EQ(lora(Stack::tunix)["modules"].size(), 18u);  // kv_einsum has V, too
}

TEST(Recipe, RejectsUnsupportedExperiments) {
  EXPECT_THROW(recipes::parse_recipe("maxtext"), Error);
  EXPECT_THROW(subject(Stack::tunix, shipped("tiny-lora.json", {"train.method=full"})), Error);
  EXPECT_THROW(subject(Stack::tunix, shipped("tiny-lora.json", {"train.dtype=int8"})), Error);
  EXPECT_THROW(
      recipes::recipe_files(subject(Stack::tunix, shipped("tiny-lora.json", {"lora.module_path=nothing"})), kTemplates),
      Error);
}

}  // namespace
}  // namespace mw::jobs
