// SPDX-License-Identifier: Apache-2.0
#include "core/recipes/serving.h"

#include "core/base/quote.h"
#include "core/base/text.h"
#include "core/base/units.h"

namespace mw::recipes {
namespace {

std::string words(const Json& list) {
  return joined(list, " ", [](const Json& v) { return v.is_string() ? v.get<std::string>() : v.dump(); });
}

// vLLM's flags for what the experiment says, as words.
std::vector<std::string> serve_flags(const RecipeInput& s, const Json& serve, const Json& mesh) {
  std::vector<std::string> flags{"--tensor-parallel-size",   mesh.at("tp").dump(),
                                 "--max-model-len",          serve.at("max_model_len").dump(),
                                 "--max-num-seqs",           serve.at("max_num_seqs").dump(),
                                 "--max-num-batched-tokens", serve.at("max_num_batched_tokens").dump(),
                                 "--gpu-memory-utilization", number_text(serve.at("memory_utilisation").get<double>())};
  if (mesh.contains("ep"))  // vLLM shares the experts over both sizes and splits the requests over the second
    flags.insert(flags.end(), {"--data-parallel-size", mesh.at("ep").dump(), "--enable-expert-parallel"});
  const std::string kv = serve.at("kv_dtype");
  flags.insert(flags.end(), {"--kv-cache-dtype", kv == "fp8" ? "fp8" : "auto"});
  if (serve.value("weight_dtype", "auto") == "fp8") flags.insert(flags.end(), {"--quantization", "fp8"});
  flags.push_back(serve.value("prefix_cache", true) ? "--enable-prefix-caching" : "--no-enable-prefix-caching");
  if (s.kind == Kind::vllm_gpu)
    flags.push_back(serve.value("chunked_prefill", true) ? "--enable-chunked-prefill" : "--no-enable-chunked-prefill");
  if (!serve.value("sliding_window_kv", true)) flags.push_back("--disable-hybrid-kv-cache-manager");
  return flags;
}

}  // namespace

void add_serving(const RecipeInput& s, const Json& settings, std::vector<File>& files) {
  const Json &serve = settings.at("serve"), &sweep = settings.at("sweep");
  std::string text = "# What serve.sh and bench.sh read; every value is one quoted word or a list of them.\n";
  const auto set = [&](const char* name, const std::string& value) {
    text += std::string(name) + "=" + shell_quoted(value) + "\n";
  };
  set("MODEL_NAME", settings.at("model").at("name"));
  set("MODEL_HUB", settings.at("model").at("hub"));
  set("MODEL_FOLDER", settings.at("model").at("path"));
  text += "SERVE_FLAGS=(";
  for (const std::string& flag : serve_flags(s, serve, settings.at("mesh"))) text += " " + shell_quoted(flag);
  text += " )\n";
  set("REQUEST_RATES", words(sweep.at("request_rates")));
  set("INPUT_LENS", words(sweep.at("input_lens")));
  set("OUTPUT_LEN", sweep.at("output_len").dump());
  set("NUM_PROMPTS", sweep.at("num_prompts").dump());
  set("NUM_PROMPTS_AT", words(sweep.at("num_prompts_at")));
  set("CONCURRENCY", sweep.at("concurrency").dump());
  set("SEED", sweep.at("seed").dump());
  files.push_back({"settings.sh", std::move(text), false});
}

}  // namespace mw::recipes
