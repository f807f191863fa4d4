// SPDX-License-Identifier: Apache-2.0
// Length histograms: number of rows by number of tokens, for planning without the data (data.lengths). Thread-safe.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "core/data/dataset/batches.h"
#include "core/data/dataset/examples.h"

namespace mw::data {

using LengthCounts = std::map<int, std::int64_t>;  // tokens of a row, including bos and end markers -> rows

// Reads a JSON object {"lengths": [[tokens, rows], ...]} (other keys are ignored) or CSV lines "tokens,rows" with an
// optional header. Entries of the same length add up. Throws DATA-LENGTHS with the line or entry.
LengthCounts read_lengths(const std::filesystem::path& file);
// Writes CSV if the name ends in .csv, else JSON with `source` under "source".
void write_lengths(const std::filesystem::path& file, const LengthCounts& lengths, const std::string& source);

struct LengthStats {
  std::int64_t rows = 0, tokens = 0;
  double mean = 0;
  int p50 = 0, p95 = 0, p99 = 0, longest = 0;  // p95: at least 95 % of the rows are no longer
};
LengthStats length_stats(const LengthCounts& lengths);

// Bins of equal width for a chart.
struct LengthBins {
  int width = 1;
  std::vector<std::int64_t> rows;  // bin b: lengths [b * width, (b + 1) * width)
  std::int64_t beyond = 0;         // rows of `upto` tokens or more
};
// At most `most_bins` bins that cover [0, upto).
LengthBins length_bins(const LengthCounts& lengths, int upto, int most_bins);

// One entry per row after overlong rows are dropped or cut, as in training; loss_tokens is unknown and 0. Throws
// DATA-LENGTHS for more than `most` rows.
std::vector<ExampleSize> example_sizes(const LengthCounts& lengths, int max_len, options::Overlong overlong,
                                       std::int64_t most);

}  // namespace mw::data
