// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/token_report.h"

#include <algorithm>
#include <numeric>

#include "core/base/counted.h"
#include "core/base/text.h"
#include "core/data/dataset/batches.h"
#include "core/data/dataset/record.h"
#include "core/data/dataset/row_reader.h"
#include "core/engine/distributed/cluster.h"
#include "core/engine/generate/scorer.h"
#include "core/experiment/bound_experiment.h"
#include "core/train/checkpoint.h"
#include "core/train/model.h"
#include "core/train/settings.h"

namespace mw::jobs {
namespace {

// The user's side of the row: the messages before the answer that is trained.
struct PromptMessages {
  std::vector<data::Message> messages{};
  Json tools{};
  std::string missing{};
};

PromptMessages prompt_of(const train::DataIndexRequest& request, const data::DataRow& row) {
  if (row.state == data::RowState::bad) return {.missing = "the row is bad"};
  if (row.place.bytes == 0) return {.missing = "running text has no prompt"};
  const std::filesystem::path file = data::data_file(request.options, row.place.file);
  const data::RawRow raw =
      data::read_row_at(file, static_cast<long>(row.place.offset), row.place.bytes, static_cast<long>(row.place.line));
  data::Record record =
      data::read_record(data::parse_row(raw, data::row_syntax(file), file.string()), row.format, request.options);
  if (auto* talk = std::get_if<data::Conversation>(&record)) {
    if (talk->completion >= talk->messages.size()) return {.missing = "the conversation has no answer"};
    talk->messages.resize(talk->completion);
    return {.messages = std::move(talk->messages), .tools = std::move(talk->tools)};
  }
  if (auto* pair = std::get_if<data::PlainPair>(&record)) return {.messages = {{"user", std::move(pair->prompt)}}};
  return {.missing = "a row of text has no prompt"};
}

std::string piece_at(const std::vector<int>& ids, size_t at, const data::Tokenizer& tokenizer) {
  return at < ids.size() ? tokenizer.piece(ids[at]) : std::string();
}

std::vector<std::optional<double>> scored(train::LoadedModel& model, const std::vector<int>& ids,
                                          const std::stop_token& stop) {
  const auto n = static_cast<int>(ids.size());
  std::vector<int> targets(ids.begin() + 1, ids.end()), positions(ids.size());
  targets.push_back(-1);
  std::iota(positions.begin(), positions.end(), 0);
  const std::vector<int> segments(ids.size(), 0);
  engine::Scorer scorer(model.cluster->network(0));
  const auto scores = scorer.score({1, n, ids, targets, positions, segments}, {}, stop);
  if (!scores) throw cancelled("scoring the row");
  std::vector<std::optional<double>> losses(ids.size());
  for (size_t i = 0; i + 1 < ids.size(); ++i) losses[i + 1] = -static_cast<double>(scores->target.span()[i]);
  return losses;
}

}  // namespace

AttendedTokens attended(int token, int window) {
  return {.sliding = window > 0 ? std::max(0, token - window + 1) : 0, .global = 0};
}

std::vector<PackedNeighbour> packed_with(std::int64_t row, const std::vector<data::DataRow>& rows,
                                         const data::BatchOptions& options) {
  if (options.packing == data::Packing::none) return {};
  std::vector<const data::DataRow*> trained;
  std::vector<data::ExampleSize> sizes;
  std::optional<int> own;
  for (const data::DataRow& r : rows) {
    const bool used = r.state == data::RowState::ok || r.state == data::RowState::truncated;
    if (!used || r.split != data::Split::train) continue;
    if (r.row == row) own = static_cast<int>(trained.size());
    trained.push_back(&r);
    sizes.push_back({r.used, r.loss_tokens});
  }
  if (!own) return {};
  std::vector<PackedNeighbour> out;
  for (const std::vector<int>& packed : data::epoch_rows(sizes, options, 0)) {
    if (std::find(packed.begin(), packed.end(), *own) == packed.end()) continue;
    for (const int i : packed)
      out.push_back({trained[static_cast<size_t>(i)]->row, trained[static_cast<size_t>(i)]->used});
    break;
  }
  return out;
}

TemplateDifference template_difference(const train::DataIndexRequest& request, const data::Tokenizer& tokenizer,
                                       const data::DataRow& row, const data::ChatTemplate& served) {
  PromptMessages prompt = prompt_of(request, row);
  if (!prompt.missing.empty()) return {.missing = std::move(prompt.missing)};
  data::ScannedRow known;
  known.state = row.state;
  known.format = row.format;
  known.position = row.place;
  known.example.row = row.row;
  const data::Example trained = data::rescan_row(request.options, tokenizer, known).example;
  std::string text;
  try {
    text = data::render_prompt(served, prompt.messages, prompt.tools);
  } catch (const Error& e) {
    return {.missing = "the served template refuses the prompt: " + e.problem().message};
  }
  std::vector<int> ids = tokenizer.encode(text);
  ids.insert(ids.begin(), tokenizer.bos());
  const size_t common = std::min(ids.size(), trained.ids.size());
  for (size_t i = 0; i < common; ++i)
    if (ids[i] != trained.ids[i])
      return {.token = static_cast<int>(i),
              .trained = piece_at(trained.ids, i, tokenizer),
              .served = piece_at(ids, i, tokenizer)};
  if (ids.size() > trained.ids.size())
    return {.token = static_cast<int>(common), .trained = {}, .served = piece_at(ids, common, tokenizer)};
  return {};
}

std::vector<std::string> row_notes(const std::vector<PackedNeighbour>& packed, const TemplateDifference& difference) {
  std::vector<std::string> notes;
  if (packed.size() > 1)
    notes.push_back("packed in one row, without seeing each other: " + joined(packed, ", ", [](const auto& n) {
                      return "row " + std::to_string(n.row + 1) + " (" + counted(n.tokens, "token") + ")";
                    }));
  const auto shown = [](const std::string& piece) {
    return piece.empty() ? std::string("the end") : Json(piece).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  if (difference.token)
    notes.push_back("a server with the model's chat template encodes the prompt differently from token " +
                    std::to_string(*difference.token + 1) + ": " + shown(difference.served) + " instead of " +
                    shown(difference.trained));
  else if (!difference.missing.empty())
    notes.push_back("the served template is not compared: " + difference.missing);
  else
    notes.push_back("a server with the model's chat template encodes the prompt in the same tokens");
  return notes;
}

std::filesystem::path tuned_model_of(const store::Store& store, const store::RunId& run,
                                     train::CheckpointChoice choice) {
  const auto checkpoint = store.find(run) ? train::chosen_checkpoint(store.run_folder(run), choice) : std::nullopt;
  if (!checkpoint)
    throw Error("RUN", "the run has no checkpoint",
                {.file = store.folder().string(),
                 .place = run,
                 .fix = "see `meshwright runs`; train one with `meshwright run`"});
  return *checkpoint;
}

TokenLosses token_losses(const experiment::Experiment& experiment, const std::filesystem::path& tuned,
                         const std::vector<int>& ids, const std::stop_token& stop) {
  const experiment::BoundExperiment config = experiment.config();
  train::ModelSettings settings = train::model_settings(config);
  settings.use = engine::NetworkUse::inference;
  settings.capacity = settings.capacity * settings.mesh.devices();
  settings.mesh = {};
  settings.context = static_cast<int>(ids.size());
  const auto stopping = [&stop](long, long) {
    if (stop.stop_requested()) throw cancelled("loading the model");
  };
  train::LoadedModel model = train::load_model(settings, stopping);
  TokenLosses out;
  if (ids.size() < 2) return out;
  out.base = scored(model, ids, stop);
  if (tuned.empty()) return out;
  train::load_tuned(model, tuned, settings);
  out.tuned = scored(model, ids, stop);
  return out;
}

}  // namespace mw::jobs
