// SPDX-License-Identifier: Apache-2.0
// compare() in its parts: serving, training, and what both need. Any thread.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/compare/comparison.h"

namespace mw::compare::comparing {

using Runs = std::vector<ComparedRun>;

void serving(const Runs& runs, Comparison& out);   // all have a sweep
void training(const Runs& runs, Comparison& out);  // all have a training
void serving_confounders(const Runs& runs, Comparison& out);

// Within a sentence: "baseline" and "the other" of two; of more, the name without what all of them begin with.
std::string called(const Comparison& out, size_t column);
// "fp8 in A and B, not said in the others": columns of one value together, where one value has several it comes last.
std::string listed(const Comparison& out, const std::vector<std::string>& values);
void confound(Comparison& out, std::string key, std::string text, Fairness at_least = Fairness::confounded);

// A setting, by column; empty: not said. Adds it where columns differ.
enum class Unsaid { differs, ignored };  // whether saying nothing differs from saying something
bool add_setting(Comparison& out, std::string key, std::string label, std::vector<std::string> texts,
                 Unsaid unsaid = Unsaid::ignored);

struct ResultRow {
  std::string key, label, unit;
  ComparisonRow::Better better = ComparisonRow::Better::neither;
};
// Values that are not finite are none. Adds nothing where no column has one. Returns the row, or nullptr.
ComparisonRow* add_result(Comparison& out, const ResultRow& row, const std::vector<double>& values);

std::string value_text(double value);  // "1,443", "23.9"

}  // namespace mw::compare::comparing
