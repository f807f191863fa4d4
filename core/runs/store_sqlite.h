// SPDX-License-Identifier: Apache-2.0
// SQLite behind a small RAII layer, for core/runs/store.cpp. Every failure is one mw::Error naming the database file.
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

namespace mw::runs {

class Database {
 public:
  // Opens or creates. Other processes' locks are waited for, at most `busy_ms`, then Error("STORE-BUSY").
  Database(const std::filesystem::path& file, int busy_ms);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void exec(const char* sql);             // no results wanted
  std::int64_t integer(const char* sql);  // first column of the first row
  void use_wal();
  std::int64_t last_row() const;
  int changes() const;
  sqlite3* handle() const { return handle_; }
  const std::filesystem::path& file() const { return file_; }
  // What the last call ran into, as an Error: STORE-BUSY, STORE-FULL, STORE-NOT-A-DATABASE, STORE-DAMAGED, ...
  Error error(int code) const;

 private:
  std::filesystem::path file_;
  int busy_ms_;
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

}  // namespace mw::runs
