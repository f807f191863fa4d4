// SPDX-License-Identifier: Apache-2.0
// Derives padded and real tokens per step from a histogram of row lengths. Pure functions; any thread.
#pragma once
#include "core/plan/request/request.h"

namespace mw::plan {

struct RowStatistics {
  double rows = 0;          // rows no longer than max_len; longer ones are dropped
  double mean = 0;          // mean real tokens of a row
  double computed = 0;      // tokens computed for one row of a micro-batch, padding included
  double slowest = 0;       // the same on the device with the longest rows, for which the others wait
  double attended = 0;      // tokens of the sequence that a computed token is in, in the mean over these tokens
  double real = 0;          // real tokens among them
  double longest = 0;       // tokens for which buffers are allocated
  double packed_rows = 0;   // rows of max_len that would hold everything
  double batches_rows = 0;  // rows as the trainer counts them: packed rows if rows are packed
};
// `rows_per_device`: rows of a micro-batch on a device, used if its tokens depend on the lengths of its rows;
// `devices`: over which its rows are split. Without a histogram, lengths follow the distribution with the most entropy
// of those with this mean up to max_len, a truncated exponential one.
RowStatistics row_statistics(const Lengths& lengths, double rows_per_device, double devices = 1);

// The number of rows of max_len tokens that best-fit-decreasing packing needs. For Lengths::packed_rows.
std::int64_t pack_count(const std::vector<std::pair<int, std::int64_t>>& histogram, int max_len);

}  // namespace mw::plan
