// SPDX-License-Identifier: Apache-2.0
#include "core/store/chain.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "core/base/counted.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/experiment/bound_experiment.h"
#include "core/store/store_rows.h"

namespace mw::store {
namespace fs = std::filesystem;
namespace {

constexpr int kPatienceMs = 5000;
constexpr std::string_view kCheckpointPrefix = "checkpoint-";

std::string_view view_of(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

bool has_links(Database& db) {
  return db.integer("SELECT count(*) FROM pragma_table_info('events') WHERE name='link'") > 0 &&
         db.integer("SELECT count(*) FROM sqlite_schema WHERE name='chains'") > 0;
}

Sha256Digest first_link(std::int64_t run, std::string_view experiment, std::string_view folder) {
  return Sha256().add("meshwright run 1\n").add_field(run_id(run)).add_field(experiment).add_field(folder).finish();
}

// Returns false if the column has no link.
bool read_link(const SqlStatement& row, int column, Sha256Digest& link) {
  const std::string_view bytes = row.text(column);
  if (bytes.size() != link.size()) return false;
  std::copy(bytes.begin(), bytes.end(), link.begin());
  return true;
}

std::string event_place(const EventColumns& columns, std::int64_t sequence) {
  return columns.kind + (columns.name.empty() ? "" : " " + columns.name) +
         (columns.step ? ", step " + std::to_string(*columns.step) : std::string()) + ", row " +
         std::to_string(sequence) + " of the table events";
}

std::set<std::int64_t> steps_in(const fs::path& folder) {
  std::set<std::int64_t> steps;
  std::error_code none;
  for (fs::directory_iterator at(folder, none), end; at != end; at.increment(none))
    if (const std::string name = at->path().filename().string(); name.starts_with(kCheckpointPrefix))
      if (const auto step = parse_number<std::int64_t>(std::string_view(name).substr(kCheckpointPrefix.size())))
        steps.insert(*step);
  return steps;
}

class Verifier {
 public:
  Verifier(const Store& store, const RunId& run, Database& db)
      : folder_(store.run_folder(run)), db_(db), run_(run_number(run)) {
    try {
      kept_ = static_cast<size_t>(std::max(1L, store.experiment(run).valid_values().train.keep_checkpoints));
    } catch (const Error&) {  // the experiment is damaged, which its link finds
    }
  }

  ChainReport verify(const std::stop_token& stop) {
    const auto end = read_start();
    if (!end) return report_;
    if (report_.state == ChainState::intact) verify_events(*end, stop);
    report_.last_link = hex(end->link);
    return report_;
  }

 private:
  void break_at(std::string item, std::string reason, std::string place = {}) {
    report_.state = ChainState::broken;
    report_.broken = std::move(item), report_.reason = std::move(reason), report_.place = std::move(place);
  }

  // Verifies the first link. Returns nothing for a run without a chain.
  std::optional<ChainEnd> read_start() {
    const auto end = has_links(db_) ? chain_end(db_, run_) : std::nullopt;
    if (!end) {
      report_.state = ChainState::none;
      report_.reason = "an earlier version of Meshwright recorded this run, without hashes";
      return std::nullopt;
    }
    SqlStatement s(
        db_, "SELECT experiment, experiment_folder, (SELECT first FROM chains WHERE run=id) FROM runs WHERE id=?");
    s.bind(run_);
    Sha256Digest first{};
    if (!s.step() || !read_link(s, 2, first) || first != first_link(run_, s.text(0), s.text(1)))
      break_at("experiment", "the frozen experiment of the run was changed");
    link_ = first;
    return end;
  }

  void verify_events(const ChainEnd& end, const std::stop_token& stop) {
    find_kept_steps();
    SqlStatement s(db_,
                   "SELECT sequence, kind, step, name, value, json, link FROM events WHERE run=? ORDER BY sequence");
    s.bind(run_);
    const std::int64_t present = count_events();
    while (report_.events < end.events && s.step()) {
      if (stop.stop_requested()) throw cancelled("the verification");
      EventColumns columns{.kind = std::string(s.text(1)), .name = std::string(s.text(3)), .step = {}, .value = {}};
      if (s.optional_number(2)) columns.step = s.integer(2);
      columns.value = s.optional_number(4);
      const std::string item = "event " + std::to_string(report_.events + 1);
      const std::string place = event_place(columns, s.integer(0));
      Sha256Digest stored{};
      if (!read_link(s, 6, stored)) return break_at(item, "it has no hash: another program added or changed it", place);
      if (next_link(sha_, link_, columns, s.text(5)) != stored) {
        if (present < end.events)
          return break_at(item,
                          std::to_string(end.events - present) + " of " + std::to_string(end.events) +
                              " events are missing, the first of them before this one",
                          place);
        if (present > end.events)
          return break_at(
              item,
              "the record has " + counted(present, "event") + ", but " + std::to_string(end.events) + " were written",
              place);
        return break_at(item, "its content, its hash or its place in the record was changed", place);
      }
      link_ = stored;
      ++report_.events;
      if (columns.kind == "checkpoint" && columns.step) verify_checkpoint(*columns.step, s.text(5));
      if (report_.state == ChainState::broken) return;
    }
    if (report_.events < end.events)
      return break_at("event " + std::to_string(report_.events + 1),
                      counted(end.events - report_.events, "event") + " at the end of the record are missing");
    if (present > end.events)
      return break_at("event " + std::to_string(end.events + 1),
                      std::to_string(present - end.events) + " events were added after the last one that was written");
    if (link_ != end.link)
      break_at("event " + std::to_string(report_.events), "it is not the last event that was written");
  }

  std::int64_t count_events() {
    SqlStatement s(db_, "SELECT count(*) FROM events WHERE run=?");
    s.bind(run_);
    return s.step() ? s.integer(0) : 0;
  }

  // The newest checkpoints have to exist; earlier ones may have been removed.
  void find_kept_steps() {
    std::set<std::int64_t> steps = steps_in(folder_);
    SqlStatement s(db_, "SELECT step FROM events WHERE run=? AND kind='checkpoint'");
    s.bind(run_);
    while (s.step()) steps.insert(s.integer(0));
    for (auto at = steps.rbegin(); at != steps.rend() && must_exist_.size() < kept_; ++at) must_exist_.insert(*at);
  }

  void verify_checkpoint(std::int64_t step, std::string_view json) try {
    const Json event = Json::parse(json, nullptr, false);
    const auto files = event.is_object() ? event.find("files") : event.end();
    if (!event.is_object() || files == event.end()) return;  // of a job on another machine
    const std::string item = "checkpoint at step " + std::to_string(step);
    if (!files->is_array())
      return break_at(item, "its files could not be hashed: " + event.value("reason", std::string("no reason given")));
    const fs::path folder = folder_ / (std::string(kCheckpointPrefix) + std::to_string(step));
    if (!is_folder(folder)) {
      if (must_exist_.contains(step)) return break_at(item, "its folder is missing", folder.string());
      ++report_.removed;
      return;
    }
    for (const Json& file : *files) {
      const std::string name = file.value("name", "");
      const fs::path path = folder / name;
      if (!is_file(path)) return break_at(item, "the file " + name + " is missing", path.string());
      const FileDigest digest = sha256_of_file(path);
      if (const auto bytes = file.value("bytes", std::uint64_t{}); digest.bytes != bytes)
        return break_at(item,
                        "the file " + name + " has " + std::to_string(digest.bytes) + " bytes; " +
                            std::to_string(bytes) + " were written",
                        path.string());
      if (hex(digest.sha256) != file.value("sha256", ""))
        return break_at(item, "the content of " + name + " was changed", path.string());
      ++report_.files;
      report_.file_bytes += digest.bytes;
    }
    ++report_.checkpoints;
  } catch (const Json::exception&) {
    break_at("checkpoint at step " + std::to_string(step), "its record is malformed");
  }

  fs::path folder_;
  Database& db_;
  std::int64_t run_;
  size_t kept_ = 1;
  std::set<std::int64_t> must_exist_;
  Sha256 sha_;
  Sha256Digest link_{};
  ChainReport report_;
};

}  // namespace

void prepare_chain(Database& db) {
  if (has_links(db)) return;
  Transaction transaction(db);  // of several processes, one adds them
  db.exec(
      "CREATE TABLE IF NOT EXISTS chains(run INTEGER PRIMARY KEY REFERENCES runs(id), first BLOB NOT NULL, "
      "events INTEGER NOT NULL, last BLOB NOT NULL)");
  if (!has_links(db)) db.exec("ALTER TABLE events ADD COLUMN link BLOB");
  transaction.commit();
}

void begin_chain(Database& db, std::int64_t run, std::string_view experiment, std::string_view experiment_folder) {
  const Sha256Digest first = first_link(run, experiment, experiment_folder);
  SqlStatement(db, "INSERT INTO chains(run, first, events, last) VALUES(?,?,0,?)")
      .bind(run)
      .bind_blob(view_of(first))
      .bind_blob(view_of(first))
      .run();
}

std::optional<ChainEnd> chain_end(Database& db, std::int64_t run) {
  SqlStatement s(db, "SELECT events, last FROM chains WHERE run=?");
  s.bind(run);
  ChainEnd end;
  if (!s.step()) return std::nullopt;
  end.events = s.integer(0);
  read_link(s, 1, end.link);
  return end;
}

void write_chain_end(Database& db, std::int64_t run, const ChainEnd& end) {
  SqlStatement(db, "UPDATE chains SET events=?, last=? WHERE run=?")
      .bind(end.events)
      .bind_blob(view_of(end.link))
      .bind(run)
      .run();
}

void rewind_chain(Database& db, std::int64_t run) {
  SqlStatement(db,
               "UPDATE chains SET events=(SELECT count(*) FROM events WHERE run=?1), last=coalesce((SELECT link FROM "
               "events WHERE run=?1 ORDER BY sequence DESC LIMIT 1), first) WHERE run=?1")
      .bind(run)
      .run();
}

Sha256Digest next_link(Sha256& sha, const Sha256Digest& previous, const EventColumns& columns, std::string_view json) {
  // The database stores NaN as NULL.
  const bool has_value = columns.value && !std::isnan(*columns.value);
  sha.add(view_of(previous)).add_field(columns.kind);
  sha.add_number(columns.step ? 1 : 0).add_number(static_cast<std::uint64_t>(columns.step.value_or(0)));
  sha.add_field(columns.name);
  sha.add_number(has_value ? 1 : 0).add_number(std::bit_cast<std::uint64_t>(has_value ? *columns.value : 0.0));
  return sha.add_field(json).finish();
}

Json hashed_files(const fs::path& checkpoint) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(checkpoint))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Json out = Json::array();
  for (const fs::path& file : files) {
    const FileDigest digest = sha256_of_file(file);
    out.push_back({{"name", file.lexically_relative(checkpoint).generic_string()},
                   {"bytes", digest.bytes},
                   {"sha256", hex(digest.sha256)}});
  }
  return out;
}

ChainReport verify_chain(const Store& store, const RunId& run, const std::stop_token& stop) {
  if (!store.find(run)) throw unknown_run(run, store.folder());
  Database db(store.folder() / "runs.sqlite", kPatienceMs);
  db.exec("BEGIN");  // one state for all queries, as another process may write the run; closing ends it
  return Verifier(store, run, db).verify(stop);
}

std::string to_text(const ChainReport& r, const RunId& run) {
  if (r.state == ChainState::none) return run + ": no chain: " + r.reason;
  if (r.state == ChainState::broken)
    return run + ": broken: " + r.broken + (r.place.empty() ? "" : " (" + r.place + ")") + ": " + r.reason + "; the " +
           counted(r.events, "event") + " before are intact";
  return run + ": intact: " + counted(r.events, "event") + ", " + counted(r.checkpoints, "checkpoint") + " (" +
         counted(r.files, "file") + ", " + to_text(Bytes(static_cast<std::int64_t>(r.file_bytes))) + ")" +
         (r.removed > 0 ? "; " + counted(r.removed, "earlier checkpoint") + " removed by train.keep_checkpoints" : "");
}

Json to_json(const ChainReport& r, const RunId& run) {
  Json json{{"run", run},
            {"state", to_string(r.state)},
            {"events", r.events},
            {"checkpoints", r.checkpoints},
            {"files", r.files},
            {"bytes", r.file_bytes},
            {"checkpoints_removed", r.removed},
            {"last_link", r.last_link},
            {"first_broken", nullptr},
            {"reason", r.reason}};
  if (r.state == ChainState::broken) json["first_broken"] = {{"item", r.broken}, {"place", r.place}};
  return json;
}

}  // namespace mw::store
