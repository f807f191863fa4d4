// SPDX-License-Identifier: Apache-2.0
// From a histogram of row lengths to what a step computes: padded and real tokens, rows, steps. Any thread.
#pragma once
#include "core/plan/request/request.h"

namespace mw::plan {

struct RowStatistics {
  double rows = 0;          // of the data that stay (no longer than max_len)
  double mean = 0;          // real tokens of one
  double computed = 0;      // tokens computed for one row of a micro-batch, padding included
  double real = 0;          // real tokens among them
  double longest = 0;       // tokens that buffers are made for
  double packed_rows = 0;   // rows of max_len that would hold everything
  double batches_rows = 0;  // rows as the trainer counts them: packed ones where rows are packed
};
// `rows_per_device` matters where rows are padded to the longest of a micro-batch.
RowStatistics row_statistics(const Lengths& lengths, double rows_per_device);

// Rows of max_len that hold all rows: the longest first, each where it leaves least. For Lengths::packed_rows.
std::int64_t pack_count(const std::vector<std::pair<int, std::int64_t>>& histogram, int max_len);

}  // namespace mw::plan
