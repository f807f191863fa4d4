// SPDX-License-Identifier: GPL-3.0-or-later
// The simulator against published servers: every serving row of resources/hardware/measurements.json, held out ones
// first, and the shipped examples against the published cells that they are about. mw_serve_accuracy
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>

#include "core/base/files.h"
#include "core/formats/bench_import.h"
#include "core/runs/replay.h"
#include "core/runs/sweep_run.h"
#include "core/serve/accuracy.h"

namespace mw {
namespace {

namespace fs = std::filesystem;
using plan::Measured;
using plan::Purpose;

bool is_rate(Measured what) {
  return what == Measured::output_tokens_per_second;
}
bool is_tpot(Measured what) {
  return what == Measured::mean_tpot || what == Measured::median_tpot;
}
bool is_ttft(Measured what) {
  return what == Measured::mean_ttft || what == Measured::median_ttft;
}

void print_rows(const char* title, Purpose purpose, const std::vector<plan::Measurement>& rows,
                const std::vector<plan::Comparison>& simulated) {
  std::printf("\n### %s\n\n| row | measured | simulated | unit | error |\n|---|--:|--:|---|--:|\n", title);
  for (size_t i = 0; i < rows.size(); ++i) {
    const plan::Measurement& m = rows[i];
    if (m.purpose != purpose || !plan::is_serving(m.what)) continue;
    std::printf("| %s | %s | %s | %s | %+.1f %% |\n", m.id.c_str(), number_text(m.value).c_str(),
                number_text(simulated[i].predicted).c_str(), m.unit.c_str(), 100 * simulated[i].error);
  }
  std::printf("\n");
  using Kind = std::pair<const char*, bool (*)(Measured)>;
  for (const auto& [name, of] : {Kind{"output rates", is_rate}, {"TPOT", is_tpot}, {"TTFT", is_ttft}}) {
    const plan::ErrorSummary s = plan::summarise(rows, simulated, purpose, of);
    if (s.rows > 0)
      std::printf("%s: %d rows, mean error %.1f %%, worst %.1f %% (%s)\n", name, s.rows, 100 * s.mean, 100 * s.worst,
                  s.worst_row.c_str());
  }
}

void print_cell(const char* target, int len, const char* what, double published, double simulated) {
  if (!std::isnan(published))
    std::printf("| %s | %d | %s | %s | %s | %+.1f %% |\n", target, len, what, number_text(published).c_str(),
                number_text(simulated, 4).c_str(), 100 * (simulated / published - 1));
}

void print_paper(const char* example, const formats::BenchSet& cells, const hardware::Catalogue& catalogue) {
  runs::Experiment e = runs::Experiment::load(fs::path(MW_RESOURCES) / "examples" / example);
  for (const formats::BenchPoint& cell : cells.points) {
    e.set_value("sweep.output_len", cell.output_len);
    const bool peak = !std::isnan(cell.output_throughput);
    formats::BenchPoint best;
    best.output_throughput = 0;
    for (const double rate : runs::sweep_settings(e).request_rates) {
      // One run at the cell's own rate; where none is printed, the best of the rates that the paper swept.
      if (std::isnan(cell.request_rate) ? std::isinf(rate) : rate != cell.request_rate) continue;
      const auto p = runs::simulated_point(e, {rate, cell.input_len}, catalogue);
      if (p.output_throughput > best.output_throughput) best = p;
      if (std::isinf(rate))
        print_cell(cells.target.c_str(), cell.input_len, "TTFT, all at once", cell.ttft.median, p.ttft.median);
    }
    print_cell(cells.target.c_str(), cell.input_len, "peak", cell.output_throughput, best.output_throughput);
    print_cell(cells.target.c_str(), cell.input_len, "TPOT at the peak", cell.tpot.median, best.tpot.median);
    if (!peak) print_cell(cells.target.c_str(), cell.input_len, "TTFT at 4/s", cell.ttft.median, best.ttft.median);
  }
}

int run() {
  const fs::path resources = MW_RESOURCES;
  const hardware::Catalogue catalogue = hardware::Catalogue::load(resources / "hardware");
  const plan::Measurements measured = plan::read_measurements(resources / "hardware/measurements.json", catalogue);
  const plan::Calibration calibration = plan::read_calibration(resources / "hardware/calibration.json");
  const auto simulated = serve::simulate_all(measured.rows, calibration);
  print_rows("Servers, held out", Purpose::holdout, measured.rows, simulated);
  print_rows("Servers, fitted to", Purpose::calibration, measured.rows, simulated);
  std::printf(
      "\n### arXiv 2605.25645, never fitted to\n\n| target | prompt | figure | published | simulated | error |\n"
      "|---|--:|---|--:|--:|--:|\n");
  const Json sets = read_json(resources / "results/paper-2605.25645.json").at("sets");
  for (const auto& [i, example] : {std::pair{0, "paper-serve-v6e-8.json"}, {1, "paper-serve-2xh100.json"}})
    print_paper(example, formats::bench_set(sets.at(static_cast<size_t>(i))), catalogue);
  return 0;
}

}  // namespace
}  // namespace mw

int main() try { return mw::run(); } catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
