// SPDX-License-Identifier: Apache-2.0
// The values of an experiment: the options of every section of the document, one member per key of the parameter table.
// Experiment::config() returns them; no other code reads keys. An empty optional is the choice "auto"; paths are
// resolved against the folder of the document. Thread-safe.
#pragma once
#include <string>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/model/inventory.h"
#include "core/options/adapters.h"
#include "core/options/cost.h"
#include "core/options/data.h"
#include "core/options/load.h"
#include "core/options/mesh.h"
#include "core/options/model.h"
#include "core/options/recipe.h"
#include "core/options/sampling.h"
#include "core/options/serving.h"
#include "core/options/sizing.h"
#include "core/options/training.h"

namespace mw::experiment {

enum class Kind { train, size, serve };

struct BoundExperiment {
  std::string name, note;
  Kind kind{};
  options::Model model;
  options::TargetOptions target;
  options::PriceOptions price;
  options::Budget budget;
  mesh::Mesh mesh;  // axes in document order; empty if the document defines none
  options::Sharding sharding;
  options::Lora lora;
  options::Data data;
  options::Training train;
  options::Recipe stack;
  options::SampleOptions sample;
  options::Sizing size;
  options::Serving serve;
  options::Sweep sweep;
  options::Measured measured;
  options::Cost cost;
  options::Export exported;
};

// For Experiment::config(), which keeps the result; nothing else calls it. Invalid values count as not set.
BoundExperiment bind(const Experiment& experiment);

// The projections of lora.targets, in the order of a layer.
std::vector<model::Role> lora_targets(const options::Lora& lora);

}  // namespace mw::experiment

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::experiment::Kind>{"train", "size", "serve"};
