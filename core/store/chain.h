// SPDX-License-Identifier: Apache-2.0
// The hash chain of a run. Its first link is SHA-256 of run id and experiment; each event stores SHA-256 of the link
// before it, its columns and its JSON; the JSON of a checkpoint contains the hashes of its files. The table `chains`
// has the number of events and the last link of each run, updated in the transaction of the events. The chain finds
// damage and changes of rows and files. It has no key, so it cannot find that somebody computed all of it again: keep
// the last link elsewhere for that. Runs of earlier versions have no chain.
#pragma once
#include <stop_token>

#include "core/base/sha256.h"
#include "core/store/store.h"
#include "core/store/store_sqlite.h"

namespace mw::store {

// Adds the tables and columns of the chain to a writable store that lacks them.
void prepare_chain(Database& db);

struct ChainEnd {
  std::int64_t events = 0;
  Sha256Digest link{};  // of the last event, or the first link
};
// These need the lock of the database; the ones that write also a transaction.
void begin_chain(Database& db, std::int64_t run, std::string_view experiment, std::string_view experiment_folder);
std::optional<ChainEnd> chain_end(Database& db, std::int64_t run);  // empty: the run has no chain
void write_chain_end(Database& db, std::int64_t run, const ChainEnd& end);
void rewind_chain(Database& db, std::int64_t run);  // after its last events were removed

Sha256Digest next_link(Sha256& sha, const Sha256Digest& previous, const EventColumns& columns, std::string_view json);

// [{name, bytes, sha256}] of the files of a checkpoint, by name. Throws Error if one cannot be read.
Json hashed_files(const std::filesystem::path& checkpoint);

enum class ChainState { intact, broken, none };
struct ChainReport {
  ChainState state = ChainState::intact;
  long events = 0;               // verified
  long checkpoints = 0;          // verified
  long files = 0;                // of these checkpoints
  long removed = 0;              // recorded checkpoints that train.keep_checkpoints removed
  std::uint64_t file_bytes = 0;  // read
  std::string last_link{};       // hexadecimal
  // The first broken item: "experiment", "event 57", "checkpoint at step 40"; what is wrong with it; details.
  std::string broken{}, reason{}, place{};
};
// Verifies the committed events of a run in their order, each checkpoint with its event. The run may be in progress.
// Throws RUN-UNKNOWN, errors of the store, and cancelled() after a stop.
ChainReport verify_chain(const Store& store, const RunId& run, const std::stop_token& stop = {});
std::string to_text(const ChainReport& report, const RunId& run);  // one or two lines
Json to_json(const ChainReport& report, const RunId& run);

}  // namespace mw::store

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::store::ChainState>{"intact", "broken", "none"};
