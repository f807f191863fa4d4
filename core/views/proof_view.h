// SPDX-License-Identifier: Apache-2.0
// A proof as tables, for the window, the clipboard and files, and a parity check as chart data. Thread-safe.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/base/event.h"
#include "core/jobs/prove.h"
#include "core/train/parity.h"
#include "core/views/series.h"

namespace mw::views {

struct ProofRow {
  std::vector<std::string> cells;  // as many as the table has columns
  bool holds = true;
};
struct ProofTable {
  std::string title;  // "Tensors", "Traffic", "Memory"
  std::vector<std::string> columns;
  std::vector<ProofRow> rows;
  int first_broken() const;  // index of the first row that does not hold; -1 if all hold
  int broken() const;        // number of rows that do not hold
};
struct ProofView {
  bool holds = false;
  std::string verdict;  // one sentence
  std::vector<ProofTable> tables;
};

// Returns the tables "Tensors" (in order of comparison), "Traffic" (summed over devices and steps) and "Memory" (by
// device and category).
ProofView view_of(const jobs::MeshProof& proof);
// Runs prove() and returns its view. Throws the Errors of prove().
ProofView prove_view(const experiment::Experiment& experiment,
                     const std::function<void(const event::Progress&)>& progress, const std::stop_token& stop);

std::string to_csv(const ProofTable& table);  // RFC 4180 with a header; the last column is whether the row holds
std::string to_csv(const ProofView& view);    // all tables, each with its title as the first column
std::string to_markdown(const ProofView& view);

// A parity check: one line per form of the merged model.
struct ParityLine {
  std::string name;                       // "Merged weights", "Read again", "Served"
  std::shared_ptr<const Series> largest;  // of |difference of logits| at each position; prompts one after the other
  std::shared_ptr<const Series> layers;   // relative difference of the hidden states behind each layer; may be empty
};
struct ParityRow {  // one form of the merged model
  std::string name, verdict, text;
  double largest = 0, mean = 0, rms = 0, allowed = 0;
  std::string measure;  // that `allowed` limits
};
struct ParityView {
  std::vector<ParityLine> lines;
  std::vector<ParityRow> rows;
  double positions = 0, layers = 0;  // last x of the charts
};
ParityView parity_view(const train::Parity& parity);

}  // namespace mw::views
