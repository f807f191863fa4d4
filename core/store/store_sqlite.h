// SPDX-License-Identifier: Apache-2.0
// SQLite behind a small RAII layer, for core/store/store.cpp. Every failure is one mw::Error naming the database file.
// A Database and its statements are used by one thread at a time.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace mw::store {

// The facts that decide how a database in WAL mode can be opened.
struct DatabaseFiles {
  bool file = false, file_writable = false, folder_writable = false;
  bool wal = false, shm = false;  // the log with content that may not be in the file yet; the log's shared index
};
DatabaseFiles database_files(const std::filesystem::path& file);  // for the effective user
// read_write: creates the file if it does not exist. read_only: reads through the log, beside other processes that
// write. immutable: reads the file alone, which is correct only while no process writes; impossible: changes are in a
// log that cannot be read without writing to the folder.
enum class OpenMode { read_write, read_only, immutable, impossible };
OpenMode open_mode(const DatabaseFiles& files);

class Database {
 public:
  // Opens or creates; where writing is not allowed, an existing database is opened for reading (read_only()). Other
  // processes' locks are waited for, at most `busy_ms`, then Error("STORE-BUSY").
  Database(const std::filesystem::path& file, int busy_ms);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void exec(const char* sql);             // no results wanted
  std::int64_t integer(const char* sql);  // first column of the first row
  void use_wal();
  std::int64_t last_row() const;
  int changes() const;
  bool read_only() const { return mode_ != OpenMode::read_write; }
  // Whether the open file is no longer the one at its path: it was deleted, moved or replaced. SQLite keeps writing to
  // the open file without an error.
  bool has_moved() const;
  // Copies everything, also from a deleted file, to a new file and continues there; on an Error the old one stays open.
  // No Statement may exist.
  void copy_to(const std::filesystem::path& file);
  // Opens the file again if it was opened as immutable and a process writes to it now. No Statement may exist.
  bool needs_reopening() const;
  void reopen();
  sqlite3* handle() const { return handle_; }
  const std::filesystem::path& file() const { return file_; }
  // What the last call ran into, as an Error: STORE-BUSY, STORE-FULL, STORE-NOT-A-DATABASE, STORE-DAMAGED, ...
  Error error(int code) const;

 private:
  void open();
  void close();
  std::filesystem::path file_;
  int busy_ms_;
  OpenMode mode_ = OpenMode::read_write;
  sqlite3* handle_ = nullptr;
};

// One prepared statement. Bind in order, step(), read columns, reset() before reuse.
class Statement {
 public:
  Statement(Database& db, std::string_view sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::int64_t v);
  Statement& bind(double v);  // NaN becomes NULL
  Statement& bind(std::string_view v);
  Statement& bind_null();
  template <class T>
  Statement& bind(const std::optional<T>& v) {
    return v ? bind(*v) : bind_null();
  }
  bool step();  // true: a row is there
  void run();   // step to the end and reset
  void reset();

  std::int64_t integer(int column) const;
  double number(int column) const;
  std::optional<double> optional_number(int column) const;
  std::string_view text(int column) const;  // valid until the next step

 private:
  void check(int code) const;
  Database& db_;
  sqlite3_stmt* statement_ = nullptr;
  int next_ = 0;
};

// BEGIN IMMEDIATE ... COMMIT; rolled back when not committed.
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
