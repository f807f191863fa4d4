// SPDX-License-Identifier: GPL-3.0-or-later
// Measures the Runs page over a store of N runs: opening it, reading the details of all runs, reading an unchanged
// store again, typing a filter, and deleting 1,000 scattered and 1,000 neighbouring runs. Arguments: a folder, which is
// created with its runs if it is missing, and N. Prints JSON; wall and CPU milliseconds of this process.
#include <QApplication>
#include <QElapsedTimer>
#include <QItemSelection>
#include <QLineEdit>
#include <QTableView>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "core/base/files.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr int kDeleted = 1000;

void make_runs(const std::filesystem::path& folder, int count) {
  store::Store store(folder);
  for (int i = 0; i < count; ++i) {
    experiment::Experiment e;
    e.set_value("lora.rank", 4 << (i % 4));
    e.set_value("train.seed", i % 50);
    e.set_value("train.steps", 20);
    const std::string name = i % 3 == 0 ? "tiny-lora" : "trial " + std::to_string(i / 7);
    const store::RunId run = store.create(e, name);
    store.append(run, {0.1, event::Started{Json{{"name", name}, {"steps", 20}}}});
    for (long step = 1; step <= 20; ++step)
      store.append(run, {0.1 * static_cast<double>(step), event::Metric{"train/loss", step, 3.0 / (1.0 + i % 17)}});
    store.append(run, {2.1, event::Finished{RunState::done, 20, 1000 + i, 2.1, Bytes(300 << 20), "", Json()}});
  }
}

double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

template <class Work>
Json timed(const Work& work) {
  QElapsedTimer clock;
  clock.start();
  const double before = cpu_ms();
  work();
  return {{"wall_ms", static_cast<double>(clock.nsecsElapsed()) * 1e-6}, {"cpu_ms", cpu_ms() - before}};
}

void select_rows(QTableView& table, int count, int stride) {
  QItemSelection rows;
  const int columns = table.model()->columnCount();
  for (int i = 0; i < count && i * stride < table.model()->rowCount(); ++i)
    rows.select(table.model()->index(i * stride, 0), table.model()->index(i * stride, columns - 1));
  table.selectionModel()->select(rows, QItemSelectionModel::ClearAndSelect);
}

Json run(const std::filesystem::path& folder, int count) {
  if (!is_folder(folder)) make_runs(folder, count);
  Json out{{"runs", count}};
  std::unique_ptr<RunsPage> page;
  out["open"] = timed([&] {
    page = std::make_unique<RunsPage>(folder);
    page->resize(1280, 800);
    page->show();
    QApplication::processEvents();
  });
  const auto is_complete = [&] {  // all but the first two runs differ from the run before
    const RunsModel& model = page->model();
    for (int row = 0; row + 1 < model.rowCount(); row += 97)
      if (model.row(row).changed.empty()) return false;
    return true;
  };
  out["details"] = timed([&] {
    while (!is_complete()) QApplication::processEvents(QEventLoop::WaitForMoreEvents);
  });
  out["refresh"] = timed([&] { page->refresh(), QApplication::processEvents(); });
  for (const char* text : {"t", "tr", "trial 1", "r16", ""})
    out["filter"][text] = timed([&] {
      page->filter().setText(QString::fromUtf8(text));
      QApplication::processEvents();
    });
  out["sort by name"] =
      timed([&] { page->table().sortByColumn(RunsModel::name, Qt::AscendingOrder), QApplication::processEvents(); });
  out["sort by time created"] = timed(
      [&] { page->table().sortByColumn(RunsModel::created, Qt::DescendingOrder), QApplication::processEvents(); });
  for (const auto& [name, stride] : {std::pair("scattered", 5), {"neighbouring", 1}}) {
    out[name]["select"] = timed([&] { select_rows(page->table(), kDeleted, stride), QApplication::processEvents(); });
    out[name]["delete"] = timed([&] { page->delete_selected(), QApplication::processEvents(); });
    out[name]["rows"] = page->model().rowCount();
    out[name]["undo"] = timed([&] { page->undo_delete(), QApplication::processEvents(); });
  }
  return out;
}

}  // namespace
}  // namespace mw::ui

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  if (argc != 3) {
    std::fprintf(stderr, "usage: mw_runs_bench FOLDER RUNS\n");
    return 2;
  }
  mw::ui::apply(mw::ui::make_theme(mw::ui::Shade::light), application);
  std::printf("%s\n", mw::ui::run(argv[1], std::atoi(argv[2])).dump(2).c_str());
  return 0;
}
