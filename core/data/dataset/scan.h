// SPDX-License-Identifier: Apache-2.0
// Reads a data file row by row and decides how training uses each row. load_dataset() and the data view share it.
// Thread-safe.
#pragma once
#include <stop_token>

#include "core/base/sha256.h"
#include "core/data/dataset/data_file.h"
#include "core/data/dataset/examples.h"

namespace mw::data {

// Training uses ok and truncated rows. DatasetOptions::drops_duplicates drops repeated rows (equal to an earlier
// training row) and in_held_out rows (training rows that are equal to a held-out row), which only give_unique_rows()
// finds.
enum class RowState { ok, truncated, too_long, no_loss, bad, repeated, in_held_out };
inline bool is_duplicate(RowState state) {
  return state == RowState::repeated || state == RowState::in_held_out;
}
enum class Split { train, held_out };

// Position of a row, sufficient to read it again on its own.
struct RowPosition {
  std::int64_t offset = 0;  // bytes
  std::uint32_t bytes = 0;  // size of its JSON text; 0: running text
  std::uint32_t skip = 0;   // running text: tokens of the block at `offset` that belong to earlier rows
  std::uint32_t line = 0;   // from 1
  FileNumber file{};
};

// The properties of a row without its tokens.
struct DataRow {
  RowState state = RowState::ok;
  Split split = Split::train;
  options::Format format = options::Format::text;
  RowPosition place{};
  std::int64_t row = 0;                                // 0-based; -1: a line of running text that is not a row
  std::int32_t tokens = 0, used = 0, loss_tokens = 0;  // before truncation; used in training; with loss
};

struct ScannedRow {
  RowState state = RowState::ok;
  Split split = Split::train;  // if training uses the row
  options::Format format = options::Format::text;
  RowPosition position{};
  Example example{};  // not truncated; its `row` is -1 for an invalid line of running text
  size_t used = 0;    // number of leading tokens that training uses
  Problem problem{};  // of a bad row
};
std::int64_t loss_tokens(const ScannedRow& row);  // of the used tokens, or of all tokens if none are used
using RowSink = std::function<void(ScannedRow)>;

// The split of a row by its file or, without files of eval_path, by its number.
Split split_of(const DatasetOptions& options, std::int64_t row, FileNumber file = {});

// Calls `sink` for every row of the files in order and continues after bad rows. Rows are encoded on all cores; `sink`
// and `progress` are called on the calling thread. Throws for faults that concern all rows (unreadable file, unknown
// format, unsuitable chat template) and passes on exceptions of the sink. Adds all bytes of the files to `sum`, if it
// is not null.
void scan_rows(const DatasetOptions& options, const Tokenizer& tokenizer, std::stop_token stop,
               const CountProgress& progress, const RowSink& sink, Sha256* sum = nullptr);

// Whether one of the files is a running text, whose rows depend on max_len. May read the beginning of the files.
bool is_running_text(const DatasetOptions& options);

DataRow data_row(const ScannedRow& scanned);

// Sets state, split and number of used tokens of a readable row of row.tokens tokens. `loss_within(n)` counts those
// with loss among the first n; row.loss_tokens is then the number of the used tokens, or of all if none are used.
void decide_use(DataRow& row, const DatasetOptions& options,
                const std::function<std::int64_t(std::int32_t)>& loss_within);

// Adds the row to the counts of `report`, but not to its problems.
void add_to_report(const DataRow& row, DatasetReport& report);

// Throws DATA-EMPTY if there is no row to train on, with the reasons.
void refuse_empty(const DatasetOptions& options, const DatasetReport& report, std::int64_t held_out);

// Reads a row of an earlier scan again; `known` is that row, whose example may be missing. Throws DATA-CHANGED if the
// file has changed.
ScannedRow rescan_row(const DatasetOptions& options, const Tokenizer& tokenizer, const ScannedRow& known);

}  // namespace mw::data
