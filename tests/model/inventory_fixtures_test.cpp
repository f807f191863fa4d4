// SPDX-License-Identifier: GPL-3.0-or-later
// The inventory lists the tensors that transformers saves for each text model (scripts/fixtures/inventory.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "core/base/json.h"
#include "core/model/catalogue.h"
#include "core/model/hf_config.h"
#include "core/model/inventory.h"

namespace mw::model {
namespace {

using Shapes = std::map<std::string, std::vector<std::int64_t>>;

std::vector<std::string> fixture_ids() {
  std::vector<std::string> ids;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(MW_FIXTURES) / "inventory"))
    if (file.path().stem() != "VERSIONS") ids.push_back(file.path().stem().string());
  return ids;
}

Json fixture(const std::string& id) {
  return read_json(std::filesystem::path(MW_FIXTURES) / "inventory" / (id + ".json"));
}

Shapes saved_tensors(const Json& tensors) {
  Shapes out;
  for (const auto& [name, shape] : tensors.at("model").items()) out[name] = shape.get<std::vector<std::int64_t>>();
  for (const Json& group : tensors.at("layers"))
    for (const Json& layer : group.at("ids"))
      for (const auto& [name, shape] : group.at("tensors").items())
        out["model.layers." + std::to_string(layer.get<int>()) + "." + name] = shape.get<std::vector<std::int64_t>>();
  return out;
}

// AltUp's matrices are one tensor of the inventory and several of the files.
Shapes listed_tensors(const TensorInventory& inventory) {
  Shapes out;
  for (const Tensor& t : inventory.tensors()) {
    if (t.role != Role::altup_projections && t.role != Role::altup_unembed_projections) {
      out[t.hf_name] = t.hf_shape;
      continue;
    }
    for (std::int64_t i = 0; i < t.hf_shape[0]; ++i)
      out[t.hf_name + "." + std::to_string(i) + ".weight"] = {t.hf_shape[1], t.hf_shape[2]};
  }
  return out;
}

class InventoryFixture : public testing::TestWithParam<std::string> {};

TEST_P(InventoryFixture, ListsTheTensorsThatTransformersSaves) {
  const Json expected = fixture(GetParam());
  const TensorInventory inventory(from_hf_config(expected.at("config"), GetParam() + "/config.json"));
  EXPECT_EQ(inventory.parameters(), expected.at("parameters").get<std::int64_t>());
  EXPECT_EQ(listed_tensors(inventory), saved_tensors(expected.at("tensors")));
  EXPECT_EQ(inventory.lora_targets().size(), expected.at("lora_modules").get<size_t>());
  std::int64_t lora = 0;
  for (const LoraTarget& t : inventory.lora_targets()) lora += t.in + t.out;
  EXPECT_EQ(lora, expected.at("lora_parameters_per_rank").get<std::int64_t>());
}

TEST_P(InventoryFixture, EveryFormOfTheConfigIsTheModelOfTheCatalogue) {
  const Json expected = fixture(GetParam());
  const Config known = text_only(catalogue_config(GetParam()));
  for (const char* form : {"config", "config_hub_style", "config_multimodal"})
    if (expected.contains(form)) {
      EXPECT_EQ(text_only(from_hf_config(expected.at(form), GetParam() + "/config.json")), known) << form;
    }
}

INSTANTIATE_TEST_SUITE_P(Transformers, InventoryFixture, testing::ValuesIn(fixture_ids()), [](const auto& p) {
  std::string name = p.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace mw::model
