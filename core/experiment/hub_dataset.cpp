// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/hub_dataset.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"

namespace mw::experiment {
namespace {

bool is_name(std::string_view text, std::string_view more) {
  return !text.empty() && text.front() != '-' && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                  c == '.' || more.find(c) != std::string_view::npos;
         });
}

}  // namespace

std::span<const HubDataset> known_datasets() {
  static const std::vector<HubDataset> datasets{
      {.name = "alpaca",
       .id = "tatsu-lab/alpaca",
       .config = "",
       .revision = "dce01c9b08f87459cf36a430d809084718273017",
       .license = "cc-by-nc-4.0",
       .rows = 52002,
       .format = options::Format::alpaca,
       .facts = "huggingface.co/datasets/tatsu-lab/alpaca (card: licence, 52,002 rows); the revision is the newest of "
                "its main branch"},
      {.name = "gsm8k",
       .id = "openai/gsm8k",
       .config = "main",
       .revision = "e53f048856ff4f594e959d75785d2c2d37b678ee",
       .license = "mit",
       .rows = 7473,
       .format = options::Format::prompt_completion,
       .columns = {{"prompt", "question"}, {"completion", "answer"}},
       .facts =
           "huggingface.co/datasets/openai/gsm8k (card: licence, 7,473 training rows); the revision is the one that "
           "LightEval pins"},
      {.name = "codev-r1",
       .id = "zhuyaoyu/CodeV-R1-dataset",
       .config = "sft",
       .revision = "688a48d6308414b9d8bceed27a9c08ee36a4fa6b",
       .license = "cc-by-sa-4.0",
       .format = options::Format::prompt_completion,
       .columns = {{"prompt", "prompt"}, {"completion", "response"}},
       .facts = "huggingface.co/datasets/zhuyaoyu/CodeV-R1-dataset (card: licence, about 87,000 rows in "
                "codev_r1_sft.jsonl); columns as in the authors' LLaMA-Factory configuration. Responses contain the "
                "reasoning"},
  };
  return datasets;
}

HubDataset parse_hub_dataset(std::string_view source) {
  for (const HubDataset& known : known_datasets())
    if (known.name == source) return known;
  const size_t at = source.find('@');
  const std::string_view id = source.substr(0, at);
  const size_t slash = id.find('/');
  const bool valid = slash != std::string_view::npos && is_name(id.substr(0, slash), "") &&
                     is_name(id.substr(slash + 1), "") &&
                     (at == std::string_view::npos || is_name(source.substr(at + 1), "/"));
  if (!valid)
    throw Error("DATA-SOURCE", "the source of the data is not a dataset's name",
                {.place = "data.source",
                 .found = std::string(source),
                 .expected = joined(known_datasets(), ", ", [](const HubDataset& d) { return d.name; }) +
                             ", OWNER/NAME or OWNER/NAME@REVISION"});
  return {.name = std::string(source),
          .id = std::string(id),
          .config = {},
          .revision = at == std::string_view::npos ? std::string() : std::string(source.substr(at + 1))};
}

std::string download_command(const HubDataset& d) {
  std::string file = d.id.substr(d.id.find('/') + 1);
  return "python -c \"import datasets; datasets.load_dataset('" + d.id + "'" +
         (d.config.empty() ? "" : ", '" + d.config + "'") + ", split='" + d.split + "'" +
         (d.revision.empty() ? "" : ", revision='" + d.revision + "'") + ").to_json('" + std::move(file) + ".jsonl')\"";
}

}  // namespace mw::experiment
