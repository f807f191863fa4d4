// SPDX-License-Identifier: GPL-3.0-or-later
// Compares the simulator with published results: every serving row of resources/hardware/measurements.json, held-out
// rows first, and the shipped examples with the cells of the serving table that they reproduce.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>

#include "core/base/files.h"
#include "core/compare/replay.h"
#include "core/formats/results/bench_import.h"
#include "core/jobs/sweep_run.h"
#include "core/planning/serving_accuracy.h"

namespace mw {
namespace {

namespace fs = std::filesystem;
using plan::MeasuredQuantity;
using plan::MeasurementUse;

bool is_rate(MeasuredQuantity what) {
  return what == MeasuredQuantity::output_tokens_per_second;
}
bool is_tpot(MeasuredQuantity what) {
  return what == MeasuredQuantity::mean_tpot || what == MeasuredQuantity::median_tpot;
}
bool is_ttft(MeasuredQuantity what) {
  return what == MeasuredQuantity::mean_ttft || what == MeasuredQuantity::median_ttft;
}

void print_summary(const char* loads, MeasurementUse purpose, const std::vector<plan::Measurement>& rows,
                   const std::vector<plan::Comparison>& simulated) {
  using Kind = std::pair<const char*, bool (*)(MeasuredQuantity)>;
  for (const auto& [name, of] : {Kind{"output rates", is_rate}, {"TPOT", is_tpot}, {"TTFT", is_ttft}}) {
    const plan::ErrorSummary s = plan::summarise(rows, simulated, purpose, of);
    if (s.rows > 0)
      std::printf("%s, %s: %d rows, mean error %.1f %%, worst %.1f %% (%s)\n", name, loads, s.rows, 100 * s.mean,
                  100 * s.worst, s.worst_row.c_str());
  }
}

void print_rows(const char* title, MeasurementUse purpose, const std::vector<plan::Measurement>& rows,
                const serve::Accuracy& simulated) {
  std::printf("\n### %s\n\n| row | measured | simulated | unit | error | load |\n|---|--:|--:|---|--:|---|\n", title);
  for (size_t i = 0; i < rows.size(); ++i) {
    const plan::Measurement& m = rows[i];
    if (m.purpose != purpose || !plan::is_serving(m.what)) continue;
    std::printf("| %s | %s | %s | %s | %+.1f %% | %s |\n", m.id.c_str(), number_text(m.value).c_str(),
                number_text(simulated.figures[i].predicted).c_str(), m.unit.c_str(), 100 * simulated.figures[i].error,
                simulated.steady[i] ? "steady" : "at once, or overload");
  }
  std::printf("\n");
  std::vector<plan::Measurement> steady_rows;
  std::vector<plan::Comparison> steady;
  for (size_t i = 0; i < rows.size(); ++i)
    if (simulated.steady[i]) steady_rows.push_back(rows[i]), steady.push_back(simulated.figures[i]);
  print_summary("all loads", purpose, rows, simulated.figures);
  print_summary("steady loads", purpose, steady_rows, steady);
}

// Results of one cell: with the prefix cache warmed by earlier points, as in the example, and with new prompts only.
struct Cell {
  const char* what;
  double published = 0;
  std::vector<double> simulated{};
};

// Runs the rate of the cell; if the paper prints none, the best of the rates that it swept.
formats::BenchPoint simulated_cell(const experiment::Experiment& e, const formats::BenchPoint& cell,
                                   const hardware::Catalogue& catalogue) {
  formats::BenchPoint best;
  best.output_throughput = 0;
  for (const double rate : experiment::sweep_settings(experiment::bind(e)).request_rates) {
    if (std::isnan(cell.request_rate) ? std::isinf(rate) : rate != cell.request_rate) continue;
    const auto p = compare::simulated_point(e, {rate, cell.input_len}, catalogue);
    if (p.output_throughput > best.output_throughput) best = p;
  }
  return best;
}

void print_paper(const char* example, const formats::BenchSet& cells, const hardware::Catalogue& catalogue) {
  const experiment::Experiment shipped = experiment::Experiment::load(fs::path(MW_RESOURCES) / "examples" / example);
  const std::vector<int> lens = experiment::sweep_settings(experiment::bind(shipped)).input_lens;
  for (const formats::BenchPoint& cell : cells.points) {
    if (std::find(lens.begin(), lens.end(), cell.input_len) == lens.end()) continue;
    std::vector<Cell> figures{{"peak", cell.output_throughput},
                              {"TPOT at the peak", cell.tpot.median},
                              {std::isinf(cell.request_rate) ? "TTFT, all at once" : "TTFT at 4/s", cell.ttft.median}};
    for (const char* cached : {"true", "false"}) {
      experiment::Experiment e = compare::counterfactual(shipped, {{"serve.prefix_cache", cached}}, catalogue);
      e.set_value("sweep.output_len", cell.output_len);
      const formats::BenchPoint p = simulated_cell(e, cell, catalogue);
      figures[0].simulated.push_back(p.output_throughput);
      figures[1].simulated.push_back(p.tpot.median);
      figures[2].simulated.push_back(p.ttft.median);
    }
    for (const Cell& f : figures) {
      if (std::isnan(f.published)) continue;
      std::printf("| %s | %d | %lld | %s | %s |", cells.target.c_str(), cell.input_len,
                  shipped.value("sweep.num_prompts").get<long long>(), f.what, number_text(f.published).c_str());
      for (const double x : f.simulated)
        std::printf(" %s | %+.1f %% |", number_text(x, 4).c_str(), 100 * (x / f.published - 1));
      std::printf("\n");
    }
  }
}

// The cells at about 16k tokens contradict 30 uncached prompts. Prints the results of repeated prompts at 4 requests/s.
void print_few_prompts(const char* example, const formats::BenchSet& cells, const hardware::Catalogue& catalogue) {
  experiment::Experiment e = experiment::Experiment::load(fs::path(MW_RESOURCES) / "examples" / example);
  for (const int prompts : {6, 8, 10}) {
    e.set_value("sweep.num_prompts", prompts);
    const auto p = compare::simulated_point(e, {4, 15360}, catalogue);
    std::printf("| %s | %d | %s | %s | %s |\n", cells.target.c_str(), prompts,
                number_text(p.output_throughput, 4).c_str(), number_text(p.tpot.median, 3).c_str(),
                number_text(p.ttft.median, 3).c_str());
  }
}

int run() {
  const fs::path resources = MW_RESOURCES;
  const hardware::Catalogue catalogue = hardware::Catalogue::load(resources / "hardware");
  const plan::Measurements measured = plan::read_measurements(resources / "hardware/measurements.json", catalogue);
  const plan::Calibration calibration = plan::read_calibration(resources / "hardware/calibration.json");
  const auto simulated = serve::simulate_all(measured.rows, calibration);
  print_rows("Servers, held out", MeasurementUse::holdout, measured.rows, simulated);
  print_rows("Servers, fitted to", MeasurementUse::calibration, measured.rows, simulated);
  std::printf(
      "\n### arXiv 2605.25645, never fitted to\n\n| target | prompt | prompts | figure | published | replayed | error "
      "| "
      "prefix cache off | error |\n|---|--:|--:|---|--:|--:|--:|--:|--:|\n");
  const Json sets = read_json(resources / "results/paper-2605.25645.json").at("sets");
  for (const auto& [i, example] : {std::pair{0, "paper-serve-v6e-8.json"},
                                   {0, "paper-serve-v6e-8-16k.json"},
                                   {1, "paper-serve-2xh100.json"},
                                   {1, "paper-serve-2xh100-16k.json"}})
    print_paper(example, formats::bench_set(sets.at(static_cast<size_t>(i))), catalogue);
  std::printf(
      "\nAbout 16k tokens, fewer prompts than the paper says (published: v6e-8 474 tokens/s, TPOT 13.5, TTFT 62 ms; "
      "2xh100 326, 19, 99)\n\n| target | prompts | tokens/s | TPOT | TTFT |\n|---|--:|--:|--:|--:|\n");
  for (const auto& [i, example] : {std::pair{0, "paper-serve-v6e-8.json"}, {1, "paper-serve-2xh100.json"}})
    print_few_prompts(example, formats::bench_set(sets.at(static_cast<size_t>(i))), catalogue);
  return 0;
}

}  // namespace
}  // namespace mw

int main() try { return mw::run(); } catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
