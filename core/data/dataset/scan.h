// SPDX-License-Identifier: Apache-2.0
// Reads a data file row by row and decides how training uses each row. load_dataset() and the data view share it.
// Thread-safe.
#pragma once
#include "core/data/dataset/dataset.h"

namespace mw::data {

enum class RowState { ok, truncated, too_long, no_loss, bad };  // training uses ok and truncated rows
enum class Split { train, held_out };

// Position of a row, sufficient to read it again on its own.
struct RowPosition {
  std::int64_t offset = 0;  // bytes
  std::uint32_t bytes = 0;  // size of its JSON text; 0: running text
  std::uint32_t skip = 0;   // running text: tokens of the block at `offset` that belong to earlier rows
  std::uint32_t line = 0;   // from 1
};

struct ScannedRow {
  RowState state = RowState::ok;
  Split split = Split::train;  // if training uses the row
  Format format = Format::text;
  RowPosition position{};
  Example example{};  // not truncated; its `row` is -1 for an invalid line of running text
  size_t used = 0;    // number of leading tokens that training uses
  Problem problem{};  // of a bad row
};
std::int64_t loss_tokens(const ScannedRow& row);  // of the used tokens, or of all tokens if none are used
using RowSink = std::function<void(ScannedRow)>;

// The split of a row by its number in the file.
Split split_of(const DatasetOptions& options, std::int64_t row);

// Calls `sink` for every row in order and continues after bad rows. Throws for faults that concern all rows (unreadable
// file, unknown format, unsuitable chat template) and passes on exceptions of the sink.
void scan_rows(const DatasetOptions& options, const Tokenizer& tokenizer, std::stop_token stop,
               const Progress& progress, const RowSink& sink);

// Adds the row to the counts of `report`, but not to its problems.
void add_to_report(const ScannedRow& row, DatasetReport& report);

// Reads a row of an earlier scan again; `known` is that row, whose example may be missing. Throws DATA-CHANGED if the
// file has changed.
ScannedRow rescan_row(const DatasetOptions& options, const Tokenizer& tokenizer, const ScannedRow& known);

}  // namespace mw::data
