// SPDX-License-Identifier: Apache-2.0
#include "core/store/store_rows.h"

#include <charconv>

namespace mw::store {
namespace {

constexpr const char* kColumns =
    "id, name, created, state, model, method, source, steps_done, steps_total, train_loss, eval_loss, seconds, tokens, "
    "peak, tags, error";

RunRow read_row(const Statement& s) {
  RunRow row;
  row.id = run_id(s.integer(0));
  row.name = s.text(1);
  row.created = s.text(2);
  row.state = parse_run_state(s.text(3));
  row.model = s.text(4);
  row.method = s.text(5);
  row.source = s.text(6);
  row.steps_done = static_cast<long>(s.integer(7));
  row.steps_total = static_cast<long>(s.integer(8));
  row.train_loss = s.optional_number(9);
  row.eval_loss = s.optional_number(10);
  row.seconds = s.number(11);
  row.tokens = s.integer(12);
  row.peak = Bytes(s.integer(13));
  row.tags = s.text(14);
  row.error = s.text(15);
  return row;
}

}  // namespace

RunId run_id(std::int64_t number) {
  return "run-" + std::to_string(number);
}

std::int64_t run_number(std::string_view id) {
  if (!id.starts_with("run-")) return 0;
  id.remove_prefix(4);
  std::int64_t number = 0;
  const auto [end, ec] = std::from_chars(id.data(), id.data() + id.size(), number);
  return ec == std::errc() && end == id.data() + id.size() && number > 0 ? number : 0;
}

StoreRows::StoreRows(Database& db)
    : db_(db),
      select_(db, std::string("SELECT ") + kColumns + " FROM runs WHERE id=?"),
      update_(db,
              "UPDATE runs SET state=?, source=?, steps_done=?, steps_total=?, train_loss=?, eval_loss=?, "
              "seconds=?, tokens=?, peak=?, error=? WHERE id=?") {}

std::optional<RunRow> StoreRows::find(std::int64_t run) {
  select_.reset();
  select_.bind(run);
  if (!select_.step()) return std::nullopt;
  RunRow found = read_row(select_);
  select_.reset();
  return found;
}

std::vector<RunRow> StoreRows::all(Trash trash) {
  Statement s(db_, std::string("SELECT ") + kColumns + " FROM runs WHERE trash=? ORDER BY id DESC");
  s.bind(std::int64_t{trash == Trash::deleted});
  std::vector<RunRow> rows;
  while (s.step()) rows.push_back(read_row(s));
  return rows;
}

void StoreRows::write(std::int64_t run, const RunRow& r) {
  update_.reset();
  update_.bind(to_string(r.state)).bind(std::string_view(r.source));
  update_.bind(std::int64_t{r.steps_done}).bind(std::int64_t{r.steps_total});
  update_.bind(r.train_loss).bind(r.eval_loss).bind(r.seconds).bind(r.tokens).bind(r.peak.value);
  update_.bind(std::string_view(r.error)).bind(run).run();
}

}  // namespace mw::store
