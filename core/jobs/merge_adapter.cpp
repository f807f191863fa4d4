// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/merge_adapter.h"
#include "core/base/file_system.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>

#include "core/base/atomic_file.h"
#include "core/base/files.h"
#include "core/data/tokenizer/chat_template.h"
#include "core/engine/distributed/cluster.h"
#include "core/engine/generate/sampler.h"
#include "core/formats/orbax/tunix_adapter.h"
#include "core/serve/scheduling/engine_executor.h"
#include "core/serve/scheduling/serving_loop.h"
#include "core/train/checkpoint.h"

namespace mw::jobs {

formats::PeftAdapter read_any_adapter(const std::filesystem::path& adapter, const model::TensorInventory& inventory,
                                      std::optional<float> alpha, std::vector<std::string>& notes) {
  if (!formats::is_orbax(adapter)) {
    if (alpha)
      throw Error("USAGE", "alpha cannot be set for a PEFT adapter, which contains it",
                  {.place = "--alpha", .fix = "remove --alpha"});
    return formats::read_peft(adapter, inventory);
  }
  formats::TunixAdapter read = formats::read_tunix_adapter(adapter, inventory, alpha);
  notes = std::move(read.notes);
  return std::move(read.adapter);
}

namespace {

namespace fs = std::filesystem;

std::vector<train::ParityPrompt> tokenised(const fs::path& base, const std::vector<std::string>& texts) {
  std::vector<train::ParityPrompt> out;
  if (texts.empty()) return out;
  train::ModelSettings settings;
  settings.path = base;
  const auto tokenizer = train::load_tokenizer_of(settings);
  for (const std::string& text : texts) {
    train::ParityPrompt prompt{text, {tokenizer->bos()}};
    const std::vector<int> ids = tokenizer->encode(text);
    prompt.ids.insert(prompt.ids.end(), ids.begin(), ids.end());
    out.push_back(std::move(prompt));
  }
  return out;
}

struct Compared {
  fs::path base, merged;
  const formats::PeftAdapter& adapter;
  std::vector<train::ParityPrompt> prompts;
};
train::Parity compared(const Compared& c, const CountProgress& checking, const std::stop_token& stop) {
  const CountProgress reported = [&](long done, long of) {
    if (stop.stop_requested()) throw cancelled("the check");
    checking(done, of);
  };
  const auto serve = [&](const std::vector<train::ParityPrompt>& prompts, model::WeightType weights,
                         const CountProgress& progress) {
    train::ServedRun run = run_served({c.base, c.merged, &c.adapter, weights}, prompts, stop);
    progress(1, 1);
    return run;
  };
  return train::check_parity(c.base, c.adapter, c.merged, {}, reported, {.prompts = c.prompts, .serve = serve});
}

// A name beside `out` that is free.
fs::path aside(const fs::path& out, const std::string& ending) {
  fs::path named = out.has_filename() ? out : out.parent_path();
  const std::string name = named.string() + ending;
  fs::path free = name;
  for (int i = 2; !is_missing_or_empty(free); ++i) free = name + "-" + std::to_string(i);
  return free;
}

void keep(const fs::path& staged, const fs::path& folder) {
  if (file_system().rename(staged.c_str(), folder.c_str()) != 0)
    throw system_error("cannot keep the merged model", folder.string(), errno);
  sync_folder_of(folder);
}

}  // namespace

MergeResult merge_adapter(const MergeRequest& request, const std::function<void(const std::string&)>& noted,
                          const CountProgress& progress, const CountProgress& checking, std::stop_token stop) {
  const model::Config config = formats::read_config(request.base);
  std::vector<std::string> notes;
  const formats::PeftAdapter adapter =
      read_any_adapter(request.adapter, model::TensorInventory(config), request.alpha, notes);
  const auto chat = data::load_chat_template(request.base, train::chat_format(config.family));
  if (std::string warning = train::template_warning(request.adapter, chat); !warning.empty())
    notes.push_back(std::move(warning));
  for (const std::string& note : notes) noted(note);
  train::require_merge_target(request.base, request.out);
  std::vector<train::ParityPrompt> prompts = tokenised(request.base, request.prompts);
  StagedFolder staged(request.out);
  MergeResult result;
  train::CheckedMerge checked =
      train::merge_checked(staged.path(), request.base, adapter, {.progress = progress}, stop);
  result.merged = std::move(checked.merged);
  result.check = std::move(checked.check);
  const bool compares = request.logits == CompareLogits::yes || !prompts.empty();
  result.parity.reason = compares ? "it was stopped" : "it was not asked for";
  try {
    if (compares && result.check.verdict == train::ParityVerdict::passed) {
      checking(0, 1);
      result.parity = compared({request.base, staged.path(), adapter, std::move(prompts)}, checking, stop);
    }
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::cancelled) throw;
  }
  using Verdict = train::ParityVerdict;
  const bool failed = result.check.verdict == Verdict::failed || result.parity.verdict == Verdict::failed;
  const bool compared_enough = !compares || result.parity.verdict == Verdict::passed ||
                               (request.unchecked == UncheckedMerge::released && !stop.stop_requested());
  result.is_released = !failed && result.check.verdict == Verdict::passed && compared_enough;
  result.folder = result.is_released ? request.out : aside(request.out, failed ? ".rejected" : ".unchecked");
  result.answer = {{"merged", result.merged.merged},          {"tensors", result.merged.tensors},
                   {"bytes", result.merged.written.value},    {"out", result.folder.string()},
                   {"released", result.is_released},          {"check", train::to_json(result.check)},
                   {"parity", train::to_json(result.parity)}, {"notes", notes}};
  write_file_atomically(staged.path() / "merge.json", result.answer.dump(2) + "\n");
  if (result.is_released)
    staged.commit();
  else
    keep(staged.path(), result.folder);
  return result;
}

train::Parity check_merged(const ParityRequest& request, const std::function<void(const std::string&)>& noted,
                           const CountProgress& checking, std::stop_token stop) {
  const model::Config config = formats::read_config(request.base);
  std::vector<std::string> notes;
  const formats::PeftAdapter adapter =
      read_any_adapter(request.adapter, model::TensorInventory(config), request.alpha, notes);
  for (const std::string& note : notes) noted(note);
  return compared({request.base, request.merged, adapter, tokenised(request.base, request.prompts)}, checking, stop);
}

std::string released_text(const MergeResult& result) {
  if (result.is_released) return "released as " + result.folder.string();
  const bool failed =
      result.check.verdict == train::ParityVerdict::failed || result.parity.verdict == train::ParityVerdict::failed;
  return "not released: the check " + std::string(failed ? "failed" : "did not run to its end") +
         "; the merged model was kept in " + result.folder.string();
}

namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<int>;
constexpr int kBlock = 16;  // tokens of a KV block, vLLM's default

train::LoadedModel load_folder(const fs::path& folder, model::WeightType weights) {
  train::ModelSettings settings;
  settings.path = folder;
  settings.weights = weights;
  settings.use = engine::NetworkUse::inference;
  return train::load_weights(settings, formats::read_config(folder));
}

serve::SchedulerSettings server_settings(const model::Config& config, int longest) {
  serve::SchedulerSettings settings;
  settings.max_num_seqs = 1;
  settings.max_model_len = longest + kGreedyTokens + 1;
  settings.max_num_batched_tokens = settings.max_model_len;
  settings.kv.block_size = kBlock;
  return serve::lay_out_engine_kv(config, settings, Bytes(0), serve::OutOfWindowKv::kept);
}

// One token at a time, as a server decodes, so that every position gives logits.
void score(engine::Network& network, const serve::SchedulerSettings& settings,
           const std::vector<train::ParityPrompt>& prompts, std::vector<float>& logits) {
  engine::ServingEngine server(network, serve::engine_capacity(network.config(), settings));
  const size_t groups = server.capacity().groups.size();
  Tokens blocks(static_cast<size_t>((settings.max_model_len + kBlock - 1) / kBlock));
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<int>(i);
  const std::vector<std::span<const int>> of_groups(groups, std::span<const int>(blocks));
  for (const train::ParityPrompt& prompt : prompts)
    for (size_t i = 0; i < prompt.ids.size(); ++i) {
      const engine::TokenChunk chunk{
          .ids = std::span(prompt.ids).subspan(i, 1), .first = static_cast<int>(i), .blocks = of_groups};
      const std::span<float> row = server.step(std::span(&chunk, 1));
      logits.insert(logits.end(), row.begin(), row.end());
    }
}

Tokens served_text(serve::ServingLoop& loop, const train::ParityPrompt& prompt) {
  serve::GenerationRequest request;
  request.prompt_ids = prompt.ids;
  request.sampling.max_new_tokens = kGreedyTokens;
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  Tokens out;
  std::string error;
  loop.submit(std::move(request), [&](serve::RequestId, const serve::TokenEvent& event) {
    const std::lock_guard lock(mutex);
    if (!event.is_last()) return out.push_back(event.token);
    error = event.error;
    done = true;
    ended.notify_one();
  });
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return done; });
  if (!error.empty()) throw Error("SERVE", error, {}, Error::Kind::failed);
  return out;
}

// The logit of one token minus that of another after `ids`.
double margin(engine::Network& network, const Tokens& ids, int token, int other) {
  const int n = static_cast<int>(ids.size());
  Tokens targets(ids.size(), -1), positions(ids.size()), segments(ids.size(), 0);
  for (int i = 0; i < n; ++i) positions[static_cast<size_t>(i)] = i;
  const auto vocab = static_cast<size_t>(network.config().vocab);
  std::vector<float> logits(ids.size() * vocab);
  network.logits({1, n, ids, targets, positions, segments}, logits);
  const float* last = logits.data() + (ids.size() - 1) * vocab;
  return double{last[token]} - last[other];
}

train::GreedyText compare_texts(engine::Network& network, const Tokens& prompt, int index, Tokens with_adapter,
                                Tokens merged) {
  train::GreedyText text{.prompt = index, .with_adapter = std::move(with_adapter), .merged = std::move(merged)};
  const auto [a, b] =
      std::mismatch(text.with_adapter.begin(), text.with_adapter.end(), text.merged.begin(), text.merged.end());
  if (a == text.with_adapter.end() || b == text.merged.end()) return text;
  text.first_difference = static_cast<int>(a - text.with_adapter.begin());
  Tokens before = prompt;
  before.insert(before.end(), text.with_adapter.begin(), a);
  text.margin = margin(network, before, *a, *b);
  return text;
}

void throw_if_stopped(const std::stop_token& stop) {
  if (stop.stop_requested()) throw cancelled("the check");
}

}  // namespace

train::ServedRun run_served(const ServedParityRequest& request, const std::vector<train::ParityPrompt>& prompts,
                            std::stop_token stop) {
  const model::Config config = formats::read_config(request.merged);
  const std::int64_t parameters = model::TensorInventory(config).parameters();
  const Bytes need(parameters * (request.weights == model::WeightType::f32 ? 4 : 2) * 5 / 4),
      machine = train::machine_memory();
  train::ServedRun out;
  if (need > machine) {
    out.not_run =
        "serving the whole model needs about " + to_text(need) + ", but only " + to_text(machine) + " are available";
    return out;
  }
  size_t longest = 0;
  for (const train::ParityPrompt& prompt : prompts) longest = std::max(longest, prompt.ids.size());
  std::vector<Tokens> texts;
  {
    throw_if_stopped(stop);
    train::LoadedModel merged = load_folder(request.merged, request.weights);
    engine::Network& network = merged.cluster->network(0);
    const serve::SchedulerSettings settings = server_settings(config, static_cast<int>(longest));
    score(network, settings, prompts, out.logits);
    serve::EngineExecutor executor(network, settings);
    serve::ServingLoop loop(settings, executor, 1);
    for (const train::ParityPrompt& prompt : prompts) {
      throw_if_stopped(stop);
      texts.push_back(served_text(loop, prompt));
    }
  }
  throw_if_stopped(stop);
  train::LoadedModel base = load_folder(request.base, request.weights);
  train::attach_adapter(*request.adapter, 0, *base.cluster);
  engine::Network& network = base.cluster->network(0);
  engine::Sampler sampler(network);
  options::SampleOptions greedy;
  greedy.max_new_tokens = kGreedyTokens;
  for (size_t i = 0; i < prompts.size(); ++i) {
    throw_if_stopped(stop);
    out.texts.push_back(compare_texts(network, prompts[i].ids, static_cast<int>(i),
                                      sampler.generate(prompts[i].ids, greedy, stop), std::move(texts[i])));
  }
  throw_if_stopped(stop);
  return out;
}

}  // namespace mw::jobs
