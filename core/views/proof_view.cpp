// SPDX-License-Identifier: Apache-2.0
#include "core/views/proof_view.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/counted.h"

namespace mw::views {
namespace {

// Escapes '|' and line breaks, which end cells and rows.
std::string escaped(const std::string& cell) {
  std::string out;
  for (const char c : cell) out += c == '|' ? "\\|" : c == '\n' ? "<br>" : std::string(1, c);
  return out;
}

std::string csv_line(const std::string& first, const std::vector<std::string>& cells, const std::string& last) {
  std::string out = first;
  for (const std::string& c : cells) out += (&c == &cells.front() && first.empty() ? "" : ",") + csv_cell(c);
  return out + "," + last + "\r\n";
}

void add_csv(const ProofTable& table, const std::string& first, std::string& out) {
  out += csv_line(first.empty() ? "" : "table", table.columns, "holds");
  for (const ProofRow& row : table.rows) out += csv_line(first, row.cells, row.holds ? "yes" : "no");
}

std::string markdown_line(const std::vector<std::string>& cells, const std::string& last) {
  std::string out = "|";
  for (const std::string& c : cells) out += " " + escaped(c) + " |";
  return out + " " + last + " |\n";
}

ProofTable tensor_table(const train::MeshComparison& proof) {
  ProofTable table{"Tensors", {"Tensor", "Compared", "Step", "Difference", "Bound", "Largest value"}, {}};
  for (const train::TensorComparison& t : proof.tensors)
    table.rows.push_back({{t.tensor.empty() ? "-" : t.tensor, t.part, t.step > 0 ? std::to_string(t.step) : "start",
                           number_text(t.difference, 3), number_text(t.bound, 3), number_text(t.magnitude, 3)},
                          t.holds()});
  return table;
}

ProofTable traffic_table(const train::MeshComparison& proof) {
  struct Sum {
    Bytes planned, counted;
    bool holds = true;
  };
  using Key = std::tuple<std::string, std::string, mesh::Phase, mesh::CollectiveKind, mesh::Cause>;
  std::vector<Key> order;  // as a step makes them
  std::map<Key, Sum> sums;
  for (const train::TrafficComparison& t : proof.traffic) {
    const Key key{t.what.tensor, t.what.axis, t.what.phase, t.what.kind, t.what.cause};
    const auto [at, fresh] = sums.try_emplace(key);
    if (fresh) order.push_back(key);
    at->second.planned += t.planned;
    at->second.counted += t.counted;
    at->second.holds = at->second.holds && t.holds();
  }
  ProofTable table{"Traffic", {"Tensor", "Axis", "Collective", "Phase", "Cause", "Planned bytes", "Counted bytes"}, {}};
  for (const Key& key : order) {
    const auto& [tensor, axis, phase, kind, cause] = key;
    const Sum& sum = sums.at(key);
    table.rows.push_back({{tensor, axis, mesh::to_string(kind), mesh::to_string(phase), mesh::to_string(cause),
                           std::to_string(sum.planned.value), std::to_string(sum.counted.value)},
                          sum.holds});
  }
  return table;
}

ProofTable memory_table(const jobs::MeshProof& proof) {
  ProofTable table{"Memory", {"Device", "Category", "Predicted", "Measured", "Off by"}, {}};
  for (const jobs::MemoryComparison& m : proof.memory) {
    const double off = m.measured.value > 0 ? 100 * (m.predicted / m.measured - 1) : 100;
    table.rows.push_back({{std::to_string(m.device), std::string(to_string(m.category)), to_text(m.predicted),
                           to_text(m.measured), number_text(off, 2) + " %"},
                          m.holds()});
  }
  return table;
}

std::string verdict_of(const jobs::MeshProof& p) {
  const std::string mesh = mesh::to_text(p.proof.mesh);
  if (!p.holds()) return mesh + " against one device: " + p.broken();
  return mesh + " computes what one device computes: " + counted(p.proof.steps, "step") + ", " +
         counted(p.proof.tensors.size(), "comparison") + " within their bounds, all " +
         std::to_string(p.proof.counted().value) + " bytes sent as planned, memory within 2 %";
}

}  // namespace

ProofView view_of(const jobs::MeshProof& proof) {
  return {.holds = proof.holds(),
          .verdict = verdict_of(proof),
          .tables = {tensor_table(proof.proof), traffic_table(proof.proof), memory_table(proof)}};
}

ProofView prove_view(const experiment::Experiment& experiment,
                     const std::function<void(const event::Progress&)>& progress, const std::stop_token& stop) {
  jobs::ProveOptions options;
  options.progress = [&](const std::string& phase, long done, long total) { progress({phase, done, total}); };
  return view_of(jobs::prove(experiment, options, stop));
}

int ProofTable::first_broken() const {
  const auto at = std::find_if(rows.begin(), rows.end(), [](const ProofRow& r) { return !r.holds; });
  return at == rows.end() ? -1 : static_cast<int>(at - rows.begin());
}

int ProofTable::broken() const {
  return static_cast<int>(std::count_if(rows.begin(), rows.end(), [](const ProofRow& r) { return !r.holds; }));
}

std::string to_csv(const ProofTable& table) {
  std::string out;
  add_csv(table, "", out);
  return out;
}

std::string to_csv(const ProofView& view) {
  std::string out;
  for (const ProofTable& table : view.tables) add_csv(table, csv_cell(table.title), out);
  return out;
}

std::string to_markdown(const ProofView& view) {
  std::string out = "**" + std::string(view.holds ? "Holds" : "Does not hold") + ".** " + escaped(view.verdict) + "\n";
  for (const ProofTable& table : view.tables) {
    out += "\n### " + escaped(table.title) + "\n\n" + markdown_line(table.columns, "Holds");
    out += "|";
    for (size_t i = 0; i <= table.columns.size(); ++i) out += "---|";
    out += "\n";
    for (const ProofRow& row : table.rows) out += markdown_line(row.cells, row.holds ? "yes" : "**no**");
  }
  return out;
}

namespace {

std::string line_name(train::ParityForm form) {
  return form == train::ParityForm::folded   ? "Merged weights"
         : form == train::ParityForm::reread ? "Read again"
                                             : "Served";
}

// Returns why the form failed or did not run, otherwise how its greedy texts compare.
std::string row_text(const train::FormParity& form) {
  if (!form.reason.empty()) return form.reason;
  if (form.texts.empty()) return form.tolerance_reason;
  const auto equal = std::count_if(form.texts.begin(), form.texts.end(),
                                   [](const train::GreedyText& t) { return !t.first_difference; });
  std::string text = "greedy text equal for " + std::to_string(equal) + " of " + counted(form.texts.size(), "prompt");
  for (const train::GreedyText& t : form.texts)
    if (t.first_difference)
      text += "; prompt " + std::to_string(t.prompt + 1) + " from token " + std::to_string(*t.first_difference + 1);
  return text;
}

}  // namespace

ParityView parity_view(const train::Parity& parity) {
  ParityView view;
  for (const train::FormParity& form : parity.forms) {
    auto largest = std::make_shared<Series>(), layers = std::make_shared<Series>();
    for (size_t i = 0; i < form.positions.size(); ++i)
      largest->append(static_cast<double>(i + 1), form.positions[i].largest);
    for (const train::LayerDivergence& layer : form.layers) layers->append(layer.layer, layer.relative);
    view.positions = std::max(view.positions, static_cast<double>(form.positions.size()));
    if (!form.layers.empty()) view.layers = std::max(view.layers, static_cast<double>(form.layers.back().layer));
    view.rows.push_back({line_name(form.form), std::string(to_string(form.verdict)), row_text(form), form.largest,
                         form.mean, form.rms, form.allowed, std::string(to_string(form.measure))});
    view.lines.push_back({line_name(form.form), std::move(largest), std::move(layers)});
  }
  return view;
}

}  // namespace mw::views
