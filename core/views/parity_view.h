// SPDX-License-Identifier: Apache-2.0
// A parity check as chart data: one line per form of the merged model. Plain values.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/train/parity.h"
#include "core/views/series.h"

namespace mw::views {

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
