// SPDX-License-Identifier: Apache-2.0
// Datasets of the Hugging Face hub that a recipe loads when the experiment has no local data (data.source).
// Thread-safe.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/options/data.h"

namespace mw::experiment {

struct HubDataset {
  std::string name;  // in data.source
  std::string id;    // "tatsu-lab/alpaca"
  std::string config, split = "train";
  std::string revision;   // commit, or empty: the newest at the first load
  std::string license{};  // SPDX-like, of the dataset card; empty if unknown
  std::int64_t rows = 0;  // of the split; 0 if unknown
  options::Format format = options::Format::automatic;
  std::map<std::string, std::string> columns{};  // reader settings that its rows need
  std::string facts{};                           // where revision, licence and rows are from
};

// The datasets with a short name.
std::span<const HubDataset> known_datasets();
// A short name, OWNER/NAME or OWNER/NAME@REVISION. Throws DATA-SOURCE.
HubDataset parse_hub_dataset(std::string_view source);
// A command that writes the dataset as a JSON Lines file for data.path.
std::string download_command(const HubDataset& dataset);

}  // namespace mw::experiment
