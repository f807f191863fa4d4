// SPDX-License-Identifier: Apache-2.0
#include "core/model/catalogue.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/model/hf_config.h"

namespace mw::model {

// Text of resources/models/catalogue.json, which names its sources: the build makes catalogue_json.cpp of it
// (core/CMakeLists.txt), so that an id needs no files at run time.
extern const char* const kCatalogueJson;

namespace {

const std::vector<Config>& models() {
  static const std::vector<Config> kModels = [] {
    const std::string file = "resources/models/catalogue.json";
    const Json catalogue = parse_json(kCatalogueJson, file);
    std::vector<Config> out;
    for (const Json& row : catalogue.at("models")) {
      out.push_back(from_hf_config(row.at("config"), file));
      out.back().id = row.at("id").get<std::string>();
    }
    return out;
  }();
  return kModels;
}

}  // namespace

std::vector<std::string> catalogue_ids() {
  std::vector<std::string> ids;
  for (const Config& config : models()) ids.push_back(config.id);
  return ids;
}

Config catalogue_config(std::string_view id) {
  for (const Config& config : models())
    if (config.id == id) return config;
  throw Error("MODEL-ID", "unknown model",
              {.place = "model.id",
               .found = std::string(id),
               .expected = "a catalogue id; nearest: " + nearest_names_text(id, catalogue_ids()),
               .fix = "choose one of these, or set model.path to a folder with a config.json"});
}

}  // namespace mw::model
