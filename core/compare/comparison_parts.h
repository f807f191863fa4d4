// SPDX-License-Identifier: Apache-2.0
// Internal parts of compare(): serving, training, and common helpers. Thread-safe.
#pragma once
#include <string>
#include <vector>

#include "core/compare/comparison.h"

namespace mw::compare::comparing {

using Runs = std::vector<ComparedRun>;

void serving(const Runs& runs, Comparison& out);   // all have a sweep
void training(const Runs& runs, Comparison& out);  // all have a training
void serving_confounders(const Runs& runs, Comparison& out);

// Returns the key of a load: "512/128@4"; the keys of its results begin with it and a dot.
std::string cell_key(const formats::BenchPoint& load);

// Returns the name of a column within a sentence: "baseline" or "the other" for two columns; for more columns, its name
// without the common prefix.
std::string called(const Comparison& out, size_t column);
// Returns "fp8 in A and B, bf16 in the others": groups columns by value, the largest group last.
std::string listed(const Comparison& out, const std::vector<std::string>& values);
void confound(Comparison& out, std::string key, std::string text, Fairness at_least = Fairness::confounded);

enum class MissingValue { differs, ignored };  // whether a missing value differs from a recorded one
bool are_different(const std::vector<std::string>& values, MissingValue missing);  // an empty text is a missing value
// For conditions that decide a result, a missing value counts as a difference.
MissingValue missing_condition(const std::string& key);
std::string definition_of(const formats::BenchSet& set, const std::string& key);  // "tpot", "start", "peak"
// Adds a setting if the columns differ, and returns whether it did.
bool add_setting(Comparison& out, std::string key, std::string label, std::vector<std::string> texts,
                 MissingValue missing = MissingValue::ignored);

struct ResultRow {
  std::string key, label, unit;
  ComparisonRow::Better better = ComparisonRow::Better::neither;
};
// Adds a result row and returns it; returns null if no column has a finite value or a mark.
ComparisonRow* add_result(Comparison& out, const ResultRow& row, const std::vector<double>& values,
                          std::vector<std::string> marks = {});

std::string value_text(double value);  // "1,443", "23.9"

}  // namespace mw::compare::comparing
