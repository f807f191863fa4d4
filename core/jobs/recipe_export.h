// SPDX-License-Identifier: Apache-2.0
// Makes the input of a recipe from an experiment: the values in force, the model, the training batches if data and
// tokenizer are available, and the findings of the checker. Any thread.
#pragma once
#include <stop_token>

#include "core/data/dataset/dataset.h"
#include "core/experiment/experiment.h"
#include "core/plan/calibration/plan_context.h"
#include "core/recipes/recipe.h"

namespace mw::jobs {

// The document as the recipe executes it: with the recipe's software and its pinned versions, the sizes of the model
// field by field, the module expression made for that software, and merging by Meshwright. The checker's findings for
// this document apply to the recipe.
experiment::Experiment as_recipe(model::Stack kind, const experiment::Experiment& experiment,
                                 const std::filesystem::path& templates);

// Throws the first error of validate(), an Error that names the key of an invalid model, and the Errors of reading the
// data.
recipes::RecipeInput recipe_input(model::Stack kind, const experiment::Experiment& experiment,
                                  const plan::PlanContext& context, const std::filesystem::path& templates,
                                  std::stop_token stop = {}, const CountProgress& progress = {});

}  // namespace mw::jobs
