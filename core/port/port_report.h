// SPDX-License-Identifier: Apache-2.0
// A ported recipe as text, JSON and a Markdown document; used by the command line and the window. Thread-safe.
#pragma once
#include <optional>

#include "core/port/adaptations.h"
#include "core/port/trl_settings.h"

namespace mw::port {

struct PortRequest {
  std::vector<std::filesystem::path> files;
  std::string gpu, tpu;  // targets; empty: chosen from the number of processes
};
struct PortReport {
  PortedRecipe recipe;
  std::optional<PortedToTpu> tpu;  // empty if the recipe's model is not known
  std::vector<Adaptation> adaptations;
  std::optional<Problem> no_plan;  // why there are no adaptations
};
PortReport port_recipe(const PortRequest& request, const plan::PlanContext& context);

std::string setting_name(const formats::ConfigSetting& setting);  // "SFTConfig.learning_rate"
std::string figures_text(const VariantFigures& figures);  // "41.2 of 79.6 GiB, 3.4 s, $18.20 per 1,000 steps, fits"

std::string report_text(const PortReport& report);
Json report_json(const PortReport& report);
std::string report_document(const PortReport& report);  // Markdown

std::string trl_text(const TrlSettings& settings);
Json trl_json(const TrlSettings& settings);
std::string trl_document(const TrlSettings& settings);

}  // namespace mw::port
