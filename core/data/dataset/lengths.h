// SPDX-License-Identifier: Apache-2.0
// How many rows have how many tokens: what planning needs of data that is not there (data.lengths). Any thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "core/data/dataset/batches.h"
#include "core/data/dataset/dataset.h"

namespace mw::data {

using LengthCounts = std::map<int, std::int64_t>;  // tokens of a row, bos and end markers included -> rows

// A JSON object {"lengths": [[tokens, rows], ...]}, other keys ignored, or CSV lines tokens,rows after an optional line
// of names. In any order; the same length twice adds up. Throws Error with the line or entry of what is wrong.
LengthCounts read_lengths(const std::filesystem::path& file);
// As CSV where the file is called .csv, else as JSON with "source": where the lengths come from.
void write_lengths(const std::filesystem::path& file, const LengthCounts& lengths, const std::string& source);

struct LengthStats {
  std::int64_t rows = 0, tokens = 0;
  double mean = 0;
  int p50 = 0, p95 = 0, p99 = 0, longest = 0;  // p95: at least 95 % of the rows are no longer
};
LengthStats length_stats(const LengthCounts& lengths);

// Bars of equal width for a chart, all of them within [0, upto); `beyond` rows are longer.
struct LengthBins {
  int width = 1;
  std::vector<std::int64_t> rows;  // bin b: lengths [b * width, (b + 1) * width)
  std::int64_t beyond = 0;
};
LengthBins length_bins(const LengthCounts& lengths, int upto, int most_bins);

// The rows one by one as training would take them: the overlong dropped or cut. Their loss is not known and 0.
// Throws Error for more than `most` rows.
std::vector<ExampleSize> example_sizes(const LengthCounts& lengths, int max_len, Overlong overlong, std::int64_t most);

}  // namespace mw::data
