// SPDX-License-Identifier: Apache-2.0
// Row by row through a data file, with what training makes of each: load_dataset() keeps the rows to train on, a view
// of the data keeps what it shows. One implementation for both. Any thread.
#pragma once
#include "core/data/dataset/dataset.h"

namespace mw::data {

enum class RowState { ok, truncated, too_long, no_loss, bad };  // the first two are used, the others dropped
enum class Split { train, held_out };

// Where a row stands: enough to read it again without what is before it.
struct RowPosition {
  std::int64_t offset = 0;  // bytes
  std::uint32_t bytes = 0;  // of its JSON text; 0: running text
  std::uint32_t skip = 0;   // running text: tokens of the block at `offset` that belong to earlier rows
  std::uint32_t line = 0;   // 1-based
};

struct ScannedRow {
  RowState state = RowState::ok;
  Split split = Split::train;  // of a used row
  Format format = Format::text;
  RowPosition place{};
  Example example{};  // before any cut; its row is -1 for a line of running text that is none
  size_t used = 0;    // tokens that training takes, from the front; 0: none
  Problem problem{};  // of a bad row: file, place, what is wrong with it
};
std::int64_t loss_tokens(const ScannedRow& row);  // of what is used, or of all of a row that is not
using RowSink = std::function<void(ScannedRow)>;

// Which split the row of that number in the file is in, if it is used.
Split split_of(const DatasetOptions& options, std::int64_t row);

// Every row in order; never stops for a bad row. Throws Error for what no later row can mend (unreadable, unknown
// format, a template that does not fit), and what the sink throws.
void scan_rows(const DatasetOptions& options, const Tokenizer& tokenizer, std::stop_token stop,
               const Progress& progress, const RowSink& sink);

// Adds a row to what a load of the file reports; its problem, where it is bad, is not kept.
void count(const ScannedRow& row, DatasetReport& report);

// A row as scan_rows() gave it; `like` is that row without its example. The file must not have changed.
ScannedRow rescan_row(const DatasetOptions& options, const Tokenizer& tokenizer, const ScannedRow& like);

}  // namespace mw::data
