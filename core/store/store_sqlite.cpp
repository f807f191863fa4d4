// SPDX-License-Identifier: Apache-2.0
#include "core/store/store_sqlite.h"
#include "core/base/file_system.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <mutex>
#include <thread>

#include "core/base/files.h"

namespace mw::store {
namespace {

constexpr const char* kOtherFolder = "choose another folder for the runs (--runs-dir or $MESHWRIGHT_RUNS)";

// Routes SQLite's writes through file_system(), like all others, by replacing the calls of its unix VFS
// (sqlite3_vfs::xSetSystemCall; a name that this build of SQLite does not use is ignored).
void route_sqlite_writes() {
  using Call = sqlite3_syscall_ptr;
  sqlite3_vfs* vfs = sqlite3_vfs_find(nullptr);
  const auto replace = [&](const char* name, auto* call) {
    vfs->xSetSystemCall(vfs, name, reinterpret_cast<Call>(call));
  };
  replace(
      "open", +[](const char* path, int flags, int mode) {
        return file_system().open(path, flags, static_cast<mode_t>(mode));
      });
  replace(
      "write", +[](int fd, const void* bytes, size_t count) { return file_system().write(fd, bytes, count); });
  const auto pwrite = +[](int fd, const void* bytes, size_t count, off_t offset) {
    return file_system().pwrite(fd, bytes, count, offset);
  };
  replace("pwrite", pwrite);
  replace("pwrite64", pwrite);
  replace(
      "ftruncate", +[](int fd, off_t size) { return file_system().ftruncate(fd, size); });
  replace(
      "unlink", +[](const char* path) { return file_system().unlink(path); });
}

Problem describe(int code, int system_errno, std::string message, int busy_ms) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {.id = "STORE-BUSY",
              .message = "another process locks the run store",
              .found = "still locked after " + std::to_string(busy_ms) + " ms",
              .fix = "wait until the other process ends, or stop it, and try again; no data was lost"};
    case SQLITE_FULL:
      return {.id = "STORE-FULL",
              .message = "no space left for the run store",
              .fix = "free some space on that disk and try again; everything committed before is kept"};
    case SQLITE_NOTADB:
      return {.id = "STORE-NOT-A-DATABASE",
              .message = "the run store is not a database",
              .expected = "an SQLite 3 file that Meshwright wrote",
              .fix = std::string("move that file away, or ") + kOtherFolder};
    case SQLITE_CORRUPT:
      return {.id = "STORE-DAMAGED",
              .message = "the run store is damaged: " + message,
              .fix = "restore the file from a copy, or move it away to start with an empty store"};
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {.id = "STORE-UNWRITABLE",
              .message = "the run store cannot be opened or written: " + message,
              .fix = std::string("allow writing there, or ") + kOtherFolder};
    default:
      break;
  }
  Problem p{.id = "STORE", .message = "the run store failed: " + message};
  if ((code & 0xff) == SQLITE_IOERR) {
    if (system_errno != 0) p = system_error("the run store cannot be read or written", "", system_errno).problem();
    p.id = "STORE-IO";
    if (p.fix.empty()) p.fix = "check that disk (space, limits, health) and try again; everything committed is kept";
  }
  return p;
}

// Returns the errno of the failed read or write of log or file; sqlite3_system_errno() is often that of a later call.
int last_errno(sqlite3* db) {
  int code = 0;
  sqlite3_file* log = nullptr;
  if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log && log->pMethods)
    log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &code);
  if (code == 0) sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &code);
  return code != 0 ? code : sqlite3_system_errno(db);
}

bool is_writable(const std::filesystem::path& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

// Converts an absolute path to an SQLite URI with escaped characters.
std::string immutable_uri(const std::filesystem::path& file) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(file).string())
    if (c == '%' || c == '?' || c == '#')
      uri += c == '%' ? "%25" : c == '?' ? "%3f" : "%23";
    else
      uri += c;
  return uri + "?immutable=1";
}

}  // namespace

DatabaseFiles database_files(const std::filesystem::path& file) {
  std::error_code none;
  const auto beside = [&](const char* suffix) { return std::filesystem::path(file.string() + suffix); };
  const std::filesystem::path folder = file.parent_path();
  return {.file = path_exists(file),
          .file_writable = is_writable(file),
          .folder_writable = is_writable(folder.empty() ? "." : folder),
          .wal = is_file(beside("-wal")) && std::filesystem::file_size(beside("-wal"), none) > 0,
          .shm = is_file(beside("-shm"))};
}

OpenMode open_mode(const DatabaseFiles& files) {
  if (!files.file || (files.file_writable && files.folder_writable)) return OpenMode::read_write;
  if (files.folder_writable || (files.wal && files.shm)) return OpenMode::read_only;
  return files.wal ? OpenMode::impossible : OpenMode::immutable;  // a writing process always has a log
}

Database::Database(const std::filesystem::path& file, int busy_ms) : file_(file), busy_ms_(busy_ms) {
  static std::once_flag routed;
  std::call_once(routed, route_sqlite_writes);
  open();
}

void Database::open() {
  mode_ = open_mode(database_files(file_));
  if (mode_ == OpenMode::impossible)
    throw Error("STORE-UNWRITABLE",
                "the run store is read-only, and its latest changes are only in the write-ahead log",
                {.file = file_.string(),
                 .found = file_.filename().string() + "-wal",
                 .fix = "copy the folder to one that you may write to, or allow writing there"});
  const int access = mode_ == OpenMode::read_write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  const std::string name = mode_ == OpenMode::immutable ? immutable_uri(file_) : file_.string();
  const int code =
      sqlite3_open_v2(name.c_str(), &handle_,
                      access | SQLITE_OPEN_NOMUTEX | (mode_ == OpenMode::immutable ? SQLITE_OPEN_URI : 0), nullptr);
  if (code != SQLITE_OK || (!read_only() && sqlite3_db_readonly(handle_, "main") == 1)) {
    const Error e = error(code != SQLITE_OK ? code : SQLITE_READONLY);
    sqlite3_close(std::exchange(handle_, nullptr));
    throw e;
  }
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, busy_ms_);
}

void Database::close() {
  // Closing removes the log by path; if the file was replaced, that path belongs to another store.
  if (handle_ && has_moved()) sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_close(std::exchange(handle_, nullptr));
}

bool Database::has_moved() const {
  int moved = 0;
  return sqlite3_file_control(handle_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}

void Database::copy_to(const std::filesystem::path& file) {
  {
    SqlStatement copy(*this, "VACUUM INTO ?");
    copy.bind(std::string_view(file.native())).run();
  }
  Database copied(file, busy_ms_);
  std::swap(handle_, copied.handle_);
  std::swap(file_, copied.file_);
  std::swap(mode_, copied.mode_);
}

bool Database::needs_reopening() const {
  return mode_ == OpenMode::immutable && open_mode(database_files(file_)) != OpenMode::immutable;
}

void Database::reopen() {
  close();
  open();
}

Error Database::error(int code) const {
  const int system_errno = handle_ && (code & 0xff) == SQLITE_IOERR ? last_errno(handle_) : 0;
  std::string message =
      handle_ && sqlite3_errcode(handle_) != SQLITE_OK ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  Problem p = describe(code, system_errno, std::move(message), busy_ms_);
  p.file = file_.string();
  const bool wrong_place = p.id == "STORE-NOT-A-DATABASE" || p.id == "STORE-UNWRITABLE";
  return Error(std::move(p), wrong_place ? Error::Kind::bad_input : Error::Kind::failed);
}

void Database::exec(const char* sql) {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) throw error(code);
}

std::int64_t Database::integer(const char* sql) {
  SqlStatement s(*this, sql);
  return s.step() ? s.integer(0) : 0;
}

void Database::use_wal() {
  // If several processes create a store at once, changing the mode may return "busy" without calling the busy handler.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(busy_ms_);
  for (;;) {
    const int code = sqlite3_exec(handle_, "PRAGMA journal_mode=WAL", nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return;
    if ((code & 0xff) != SQLITE_BUSY || std::chrono::steady_clock::now() > give_up) throw error(code);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

int Database::changes() const {
  return sqlite3_changes(handle_);
}

std::optional<std::pair<std::int64_t, std::int64_t>> Database::version() {
  if (mode_ == OpenMode::immutable) return std::nullopt;
  // data_version counts the commits of other connections.
  return std::pair(integer("PRAGMA data_version"), std::int64_t{sqlite3_total_changes(handle_)});
}

SqlStatement::SqlStatement(Database& db, std::string_view sql) : db_(db) {
  check(sqlite3_prepare_v2(db.handle(), sql.data(), static_cast<int>(sql.size()), &statement_, nullptr));
}

SqlStatement::~SqlStatement() {
  sqlite3_finalize(statement_);
}

void SqlStatement::check(int code) const {
  if (code != SQLITE_OK) throw db_.error(code);
}

SqlStatement& SqlStatement::bind(std::int64_t v) {
  check(sqlite3_bind_int64(statement_, ++next_, v));
  return *this;
}
SqlStatement& SqlStatement::bind(double v) {
  check(sqlite3_bind_double(statement_, ++next_, v));
  return *this;
}
SqlStatement& SqlStatement::bind(std::string_view v) {
  check(sqlite3_bind_text64(statement_, ++next_, v.data() ? v.data() : "", v.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}
SqlStatement& SqlStatement::bind_blob(std::string_view bytes) {
  check(sqlite3_bind_blob64(statement_, ++next_, bytes.data(), bytes.size(), SQLITE_TRANSIENT));
  return *this;
}
SqlStatement& SqlStatement::bind_null() {
  check(sqlite3_bind_null(statement_, ++next_));
  return *this;
}

bool SqlStatement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  const Error e = db_.error(code);
  reset();
  throw e;
}

void SqlStatement::run() {
  while (step()) {
  }
  reset();
}

void SqlStatement::reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  next_ = 0;
}

std::int64_t SqlStatement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}
double SqlStatement::number(int column) const {
  return sqlite3_column_double(statement_, column);
}
std::optional<double> SqlStatement::optional_number(int column) const {
  if (sqlite3_column_type(statement_, column) == SQLITE_NULL) return std::nullopt;
  return number(column);
}
std::string_view SqlStatement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return data ? std::string_view(data, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : "";
}

Transaction::Transaction(Database& db) : db_(db) {
  db_.exec("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (open_ && !sqlite3_get_autocommit(db_.handle())) sqlite3_exec(db_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  db_.exec("COMMIT");
  open_ = false;
}

}  // namespace mw::store
