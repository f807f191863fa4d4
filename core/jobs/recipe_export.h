// SPDX-License-Identifier: Apache-2.0
// From the document to a recipe's subject: the values in force, the model, the batches where data and tokenizer are at
// hand, what the checker says of it elsewhere. Any thread.
#pragma once
#include <stop_token>

#include "core/data/dataset/dataset.h"
#include "core/experiment/experiment.h"
#include "core/hardware/catalogue.h"
#include "core/recipes/recipe.h"

namespace mw::jobs {

// The document that the recipe carries out: its own software with the versions it pins, the model's sizes given field
// by field, the expression made for that software, merging done here. What the checker says of it holds for the recipe.
experiment::Experiment as_recipe(recipes::Kind kind, const experiment::Experiment& experiment,
                                 const std::filesystem::path& templates);

// Throws the first error of validate(), Error naming the key for a model that is none, and what reading the data
// throws.
recipes::RecipeInput recipe_subject(recipes::Kind kind, const experiment::Experiment& experiment,
                                    const hardware::Catalogue& catalogue, const std::filesystem::path& templates,
                                    std::stop_token stop = {}, const data::Progress& progress = {});

}  // namespace mw::jobs
