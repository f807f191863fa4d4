// SPDX-License-Identifier: Apache-2.0
// RAII wrappers for SQLite, used by core/store. Every failure throws mw::Error with the database file. One thread at a
// time may use a Database and its statements.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace mw::store {

// Existence and permissions of the files of a database in WAL mode; open_mode() depends on them.
struct DatabaseFiles {
  bool file = false, file_writable = false, folder_writable = false;
  bool wal = false, shm = false;  // a non-empty write-ahead log exists; its shared-memory index exists
};
DatabaseFiles database_files(const std::filesystem::path& file);  // for the effective user
// read_write: creates the file if it does not exist. read_only: reads file and log while other processes write.
// immutable: reads only the file, which is correct while no process writes. impossible: the log has changes, but cannot
// be read without writing to the folder.
enum class OpenMode { read_write, read_only, immutable, impossible };
OpenMode open_mode(const DatabaseFiles& files);

class Database {
 public:
  // Opens or creates the database; opens it read-only without write permission (see read_only()). Waits at most
  // `busy_ms` for locks of other processes, then throws STORE-BUSY.
  Database(const std::filesystem::path& file, int busy_ms);
  ~Database() { close(); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void exec(const char* sql);             // discards results
  std::int64_t integer(const char* sql);  // first column of the first row
  void use_wal();
  int changes() const;
  // Differs from an earlier value if any process committed changes in between; empty: not known (immutable).
  std::optional<std::pair<std::int64_t, std::int64_t>> version();
  bool read_only() const { return mode_ != OpenMode::read_write; }
  // Returns whether the open file was deleted, moved or replaced at its path. SQLite writes to such a file without an
  // error.
  bool has_moved() const;
  // Copies the database, even if its file was deleted, to a new file and switches to it. On an Error the old file stays
  // open. No SqlStatement may exist.
  void copy_to(const std::filesystem::path& file);
  // reopen() opens the file again; needed if it was opened as immutable and a process now writes to it. No SqlStatement
  // may exist.
  bool needs_reopening() const;
  void reopen();
  sqlite3* handle() const { return handle_; }
  const std::filesystem::path& file() const { return file_; }
  // Converts a result code of the last call to an Error: STORE-BUSY, STORE-FULL, STORE-NOT-A-DATABASE, STORE-DAMAGED...
  Error error(int code) const;

 private:
  void open();
  void close();
  std::filesystem::path file_;
  int busy_ms_;
  OpenMode mode_ = OpenMode::read_write;
  sqlite3* handle_ = nullptr;
};

// A prepared statement. Bind parameters in order, call step(), read columns, call reset() before reuse.
class SqlStatement {
 public:
  SqlStatement(Database& db, std::string_view sql);
  ~SqlStatement();
  SqlStatement(const SqlStatement&) = delete;
  SqlStatement& operator=(const SqlStatement&) = delete;

  SqlStatement& bind(std::int64_t v);
  SqlStatement& bind(double v);  // NaN becomes NULL
  SqlStatement& bind(std::string_view v);
  SqlStatement& bind_blob(std::string_view bytes);
  SqlStatement& bind_null();
  template <class T>
  SqlStatement& bind(const std::optional<T>& v) {
    return v ? bind(*v) : bind_null();
  }
  bool step();  // returns whether a row is available
  void run();   // steps to the end and resets
  void reset();

  std::int64_t integer(int column) const;
  double number(int column) const;
  std::optional<double> optional_number(int column) const;
  std::string_view text(int column) const;  // or bytes of a blob; valid until the next step

 private:
  void check(int code) const;
  Database& db_;
  sqlite3_stmt* statement_ = nullptr;
  int next_ = 0;
};

// BEGIN IMMEDIATE ... COMMIT; rolls back on destruction unless committed.
class Transaction {
 public:
  explicit Transaction(Database& db);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& db_;
  bool open_ = true;
};

}  // namespace mw::store
