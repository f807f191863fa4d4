// SPDX-License-Identifier: Apache-2.0
// A proof as tables: for the window, for the clipboard, for files. Plain values; any thread.
#pragma once
#include <string>
#include <vector>

#include "core/base/event.h"
#include "core/jobs/prove.h"

namespace mw::views {

struct ProofRow {
  std::vector<std::string> cells;  // as many as the table has columns
  bool holds = true;
};
struct ProofTable {
  std::string title;  // "Tensors", "Traffic", "Memory"
  std::vector<std::string> columns;
  std::vector<ProofRow> rows;
  int first_broken() const;  // row, -1: all hold
  int broken() const;        // how many
};
struct ProofView {
  bool holds = false;
  std::string verdict;  // one sentence
  std::vector<ProofTable> tables;
};

// "Tensors": as they were compared, the tensor's name first. "Traffic": devices and steps summed. "Memory": by device
// and category.
ProofView view_of(const jobs::MeshProof& proof);
// prove(), viewed. Throws as it does.
ProofView prove_view(const experiment::Experiment& experiment,
                     const std::function<void(const event::Progress&)>& progress, const std::stop_token& stop);

std::string to_csv(const ProofTable& table);  // RFC 4180, with a header; the last column says whether it holds
std::string to_csv(const ProofView& view);    // all tables, each with its title as first column
std::string to_markdown(const ProofView& view);

}  // namespace mw::views
