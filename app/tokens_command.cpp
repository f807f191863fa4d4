// SPDX-License-Identifier: GPL-3.0-or-later
// `tokens`: one row of the training data token by token.
#include <CLI/CLI.hpp>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/counted.h"
#include "core/experiment/bound_experiment.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/jobs/token_report.h"
#include "core/train/model.h"
#include "core/train/settings.h"
#include "core/views/data_view.h"

namespace mw::app {
namespace {

struct TokensOptions {
  std::int64_t row = 1;
  TunedRun tuned{};
  std::filesystem::path adapter{};
  bool losses = false;
};

struct RowReport {
  views::DataDetail detail;
  std::vector<jobs::PackedNeighbour> packed;
  jobs::TemplateDifference difference;
  jobs::TokenLosses losses;
  int window = 0;
};

void add_tokens_options(CLI::App& command, CommonOptions& common, TokensOptions& options) {
  add_file_and_set_options(command, common);
  command.add_option("--row", options.row, "Row of the data file, from 1")->check(CLI::Range(1, 2000000000));
  command.add_flag("--losses", options.losses, "Compute the loss of each token under the base model");
  add_tuned_run_options(command, options.tuned, "Also under the best checkpoint of this run, or latest");
  command.add_option("--adapter", options.adapter, "Also under this PEFT adapter or model folder");
}

RowReport report_of(const CommonOptions& common, const TokensOptions& options) {
  const experiment::Experiment experiment = load_experiment(common);
  const experiment::BoundExperiment config = experiment.config();
  const train::DataIndexRequest request = train::data_index_request(config);
  if (request.source != train::DataSource::rows)
    throw Error("DATA", "the experiment has no data file",
                {.place = "data.path", .expected = "a file of training rows"});
  const auto tokenizer = data::load_tokenizer(request.tokenizer);
  std::vector<data::DataRow> rows;
  train::index_data(request, tokenizer.get(), common.stop, {}, [&](const data::DataRow& row) { rows.push_back(row); });
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const data::DataRow& r) { return r.row == options.row - 1; });
  if (found == rows.end())
    throw Error("RANGE", "the data file has no such row",
                {.file = request.options.path.string(),
                 .place = "--row",
                 .found = std::to_string(options.row),
                 .expected = "1 to " + std::to_string(rows.size())});
  const model::Config model = formats::model_config(config.model);
  RowReport out;
  out.detail = views::detail_of(request, *tokenizer, *found);
  out.window = model.sliding_window;
  if (found->state == data::RowState::bad) throw Error(out.detail.problem);
  out.packed = jobs::packed_with(found->row, rows, request.batches);
  out.difference =
      jobs::template_difference(request, *tokenizer, *found, train::served_template(config.model, model.family));
  std::filesystem::path tuned = options.adapter;
  if (!options.tuned.run.empty()) tuned = tuned_model(common, options.tuned);
  if (!options.losses && tuned.empty()) return out;
  std::vector<int> ids;
  for (const views::DataToken& token : out.detail.tokens) ids.push_back(token.id);
  ids.resize(std::min(ids.size(), static_cast<size_t>(found->used > 0 ? found->used : found->tokens)));
  out.losses = jobs::token_losses(experiment, tuned, ids, common.stop);
  return out;
}

Json loss_json(const std::vector<std::optional<double>>& losses, size_t at) {
  return at < losses.size() ? or_null(losses[at]) : Json(nullptr);
}

Json report_json(const RowReport& report) {
  Json tokens = Json::array(), packed = Json::array(), difference(nullptr);
  for (size_t i = 0; i < report.detail.tokens.size(); ++i) {
    const views::DataToken& t = report.detail.tokens[i];
    const auto seen = jobs::attended(static_cast<int>(i), report.window);
    Json one{{"id", t.id},
             {"piece", t.piece},
             {"special", t.kind == views::TokenKind::special},
             {"loss", t.loss},
             {"used", static_cast<int>(i) < report.detail.row.used},
             {"sees_from", {{"sliding", seen.sliding}, {"global", seen.global}}}};
    if (!report.losses.base.empty()) one["base_nll"] = loss_json(report.losses.base, i);
    if (!report.losses.tuned.empty()) one["nll"] = loss_json(report.losses.tuned, i);
    tokens.push_back(std::move(one));
  }
  for (const jobs::PackedNeighbour& n : report.packed) packed.push_back({{"row", n.row + 1}, {"tokens", n.tokens}});
  if (const auto& d = report.difference; d.token)
    difference = {{"token", *d.token}, {"trained", d.trained}, {"served", d.served}};
  else if (!d.missing.empty())
    difference = {{"not_compared", d.missing}};
  return {{"row", report.detail.row.row + 1},
          {"tokens", tokens},
          {"window", report.window},
          {"packed_with", packed},
          {"template_difference", difference}};
}

void print_report(const RowReport& report) {
  print_text("row %lld: %s, %d carry loss\n", static_cast<long long>(report.detail.row.row + 1),
             counted(report.detail.row.tokens, "token").c_str(), report.detail.row.loss_tokens);
  for (const std::string& line : jobs::row_notes(report.packed, report.difference)) print_text("%s\n", line.c_str());
  print_text("%7s %8s  %-5s %9s %9s  %s\n", "token", "id", "loss", "base", "tuned", "piece");
  const auto text = [](const std::vector<std::optional<double>>& losses, size_t at) {
    return at < losses.size() && losses[at] ? number_text(*losses[at], 4) : std::string("-");
  };
  for (size_t i = 0; i < report.detail.tokens.size(); ++i) {
    const views::DataToken& t = report.detail.tokens[i];
    const Json piece = t.piece;
    print_text("%7zu %8d  %-5s %9s %9s  %s\n", i + 1, t.id, t.loss ? "yes" : "no", text(report.losses.base, i).c_str(),
               text(report.losses.tuned, i).c_str(), dump_utf8(piece).c_str());
  }
}

int run_tokens(const CommonOptions& common, const TokensOptions& options) {
  const RowReport report = report_of(common, options);
  if (common.output == Output::json)
    print_json(report_json(report));
  else
    print_report(report);
  return 0;
}

}  // namespace

Subcommand tokens_subcommand() {
  return make_subcommand("tokens", "Show one row of the training data token by token", add_tokens_options, run_tokens);
}

}  // namespace mw::app
