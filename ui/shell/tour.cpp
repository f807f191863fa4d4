// SPDX-License-Identifier: GPL-3.0-or-later
// Opens every page of a real window with real runs and takes a picture of each.
#include <QAbstractItemView>
#include <QApplication>
#include <QComboBox>
#include <QLineEdit>
#include <QTimer>
#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/experiment/bound_experiment.h"
#include "ui/form/experiment_panel.h"
#include "ui/pages/compare/compare_page.h"
#include "ui/pages/data/data_page.h"
#include "ui/pages/design/design_page.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/pages/serve/serve_page.h"
#include "ui/pages/train/train_page.h"
#include "ui/shell/app.h"
#include "ui/shell/bottom_docks.h"
#include "ui/shell/command_palette.h"
#include "ui/shell/main_window.h"
#include "ui/shell/page_stack.h"
#include "ui/shell/welcome.h"
#include "ui/shell/window_docks.h"

namespace mw::ui {
namespace fs = std::filesystem;
namespace {

void settle(int ms) {
  QEventLoop loop;
  QTimer::singleShot(ms, &loop, &QEventLoop::quit);
  loop.exec();
}

bool wait_for(const std::function<bool()>& done, int ms) {
  for (int waited = 0; waited < ms && !done(); waited += 20) settle(20);
  return done();
}

constexpr QSize kSmall(1280, 800), kLarge(2560, 1440);

class Tour {
 public:
  Tour(const TourOptions& options) : options_(options), window_({{}, options.runs_folder, options.resources, {}}) {
    for (const auto& [width, height] : options.sizes) sizes_ << QSize(width, height);
  }

  std::vector<fs::path> take() {
    window_.resize(sizes_.value(0, kSmall));
    window_.show();
    // A blinking caret would make the pictures differ between runs.
    QApplication::setCursorFlashTime(0);
    wait_for([&] { return window_.predictor().is_settled(); }, 10000);
    window_.welcome().open();
    shots("first-start");
    window_.welcome().hide();
    window_.show_page(Page::serve);
    window_.pages().serve.show_kind(RunKind::sweep);
    shot("sweep-empty");
    window_.pages().serve.show_kind(RunKind::size);
    shot("serve-empty");
    window_.pages().serve.show_server();
    shots("serve-server");
    show_envelope();
    window_.show_page(Page::compare);
    shot("compare-empty");
    window_.document().reset("data.path");
    window_.show_page(Page::data);
    shot("data-empty");
    window_.document().undo_stack().undo();
    designs();
    open_run();
    show_data();
    shots("data");
    window_.show_page(Page::train);
    shots("train");
    window_.show_page(Page::serve);
    window_.pages().serve.show_kind(RunKind::size);
    if (!size_run_.empty()) shots("serve");
    window_.pages().serve.show_kind(RunKind::sweep);
    wait_for([&] { return !window_.pages().serve.sweep().is_busy(); }, 30000);
    if (!sweeps_.empty()) shots("sweep");
    window_.show_page(Page::runs);
    window_.pages().runs.select(run_);
    shots("runs");
    details();
    comparisons();
    mesh_run();
    return std::move(files_);
  }

 private:
  // The mesh of the paper, alone and beside another one. Restores the document afterwards.
  void designs() {
    const auto before = window_.document().snapshot();
    const auto file = window_.document().file();
    window_.document().open_example(options_.resources / "examples" / "paper-train-v5p-8.json");
    window_.show_page(Page::design);
    const auto priced = [this] { return window_.predictor().is_settled(); };
    wait_for(priced, 10000);
    Alternatives& others = window_.pages().design.alternatives();
    others.search();
    wait_for([&] { return !others.is_searching(); }, 20000);
    shots("design");
    window_.pages().design.tabs().setCurrentWidget(&others);
    shots("design-alternatives");
    window_.pages().design.tabs().setCurrentIndex(0);
    settle(100);
    window_.pages().design.pin();
    window_.document().set("mesh", Json{{"fsdp", 2}, {"tp", 2}});
    wait_for(priced, 10000);
    window_.pages().design.canvases().live().select_device(1);
    window_.pages().design.canvases().pinned().select_device(1);
    shots("design-two-meshes");
    window_.pages().design.unpin();
    show_mesh("4xv5e-16", {{"data", 4}, {"fsdp", 4}, {"tp", 4}});
    shots("design-slices");
    show_mesh("32xh100", {{"fsdp", 8}, {"tp", 4}});
    shot("design-nodes");
    window_.document().restore(before, file, Edited::no);
    wait_for(priced, 10000);
    window_.docks().bottom->set(DockState::collapsed);  // the problems were that document's
  }

  // Trained with MaxText, which has all axes.
  void show_mesh(const char* target, Json mesh) {
    experiment::Experiment e = experiment::Experiment::load(options_.resources / "examples" / "paper-train-v5p-8.json");
    e.set_value("target.id", target);
    e.set_value("mesh", std::move(mesh));
    e.set_value("train.batch", 64);
    e.set_value("train.loss_chunk", 256);
    e.set_value("train.stack", "maxtext");
    window_.document().replace(e, u"tour"_s);
    wait_for([this] { return window_.predictor().is_settled(); }, 10000);
  }

  // The finished run of a kind with the most steps, which gives the charts the most data.
  store::RunId longest(RunKind kind) {
    store::RunId run;
    long most = -1;
    for (const store::RunRow& r : finished(kind))
      if (r.steps_done > most) {
        most = r.steps_done;
        run = r.id;
      }
    return run;
  }

  // Returns the finished runs of the store, newest first.
  std::vector<store::RunRow> finished(RunKind kind) {
    RunsModel& model = window_.pages().runs.model();
    model.refresh();
    std::vector<store::RunRow> runs;
    for (int i = 0; i < model.rowCount(); ++i)
      if (const store::RunRow& run = model.row(i); run.state == RunState::done && kind_of(run) == kind)
        runs.push_back(run);
    return runs;
  }

  void open(const store::RunId& run) {
    window_.runs().open(run);
    if (!wait_for([&] { return window_.runs().shown() && window_.runs().shown()->id == run; }, 60000))
      throw Error("TOUR", "the run could not be opened", {.place = run}, Error::Kind::failed);
  }

  void open_run() {
    size_run_ = longest(RunKind::size);
    if (!size_run_.empty()) open(size_run_);
    for (const store::RunRow& r : finished(RunKind::sweep)) sweeps_.push_back(r.id);
    if (!sweeps_.empty()) open(longest(RunKind::sweep));
    run_ = longest(RunKind::train);
    if (run_.empty())
      throw Error("TOUR", "the run store has no finished run to show",
                  {.file = options_.runs_folder.string(), .fix = "run an experiment first"});
    open(run_);
  }

  // The newest finished run on several virtual devices; empty: none.
  store::RunId newest_on_a_mesh() {
    for (const store::RunRow& r : finished(RunKind::train))
      if (load_run(options_.runs_folder, r.id)->record.valid_values().mesh.devices() > 1) return r.id;
    return {};
  }

  void mesh_run() {
    const store::RunId run = newest_on_a_mesh();
    if (run.empty()) return;
    open(run);
    TrainPage& page = window_.pages().train;
    window_.show_page(Page::train);
    page.link().set_playhead(page.link().data().high / 2);
    shots("train-mesh");
    page.devices().choose(DeviceMemoryView::kAll);
    page.collectives().choose(views::TrafficBy::kind, views::TrafficAmount::seconds);
    shot("train-mesh-devices");
    window_.show_page(Page::design);
    window_.pages().design.measured().show_measured(true);
    shot("design-measured");
    window_.pages().design.measured().show_measured(false);
  }

  // All sweeps and shipped results, in each view.
  void comparisons() {
    ComparePage& page = window_.pages().compare;
    const fs::path shipped = options_.resources / "results";
    if (path_exists(shipped))
      for (const auto& entry : fs::directory_iterator(shipped))
        if (entry.path().extension() == ".json") page.add_file(entry.path());
    for (const auto& run : sweeps_) page.add_run(run);
    window_.show_page(Page::compare);
    wait_for([&] { return !page.is_busy(); }, 20000);
    if (page.runs().empty()) return;
    shots("compare");
    for (const auto& [view, name] : {std::pair{u"load"_s, "compare-by-rate"},
                                     {u"pareto"_s, "compare-pareto"},
                                     {u"distribution"_s, "compare-distribution"},
                                     {u"heat"_s, "compare-heat-map"},
                                     {u"cost"_s, "compare-cost"}}) {
      page.charts().show_view(view);
      shot(name);
    }
  }

  void show_data() {
    window_.show_page(Page::data);
    DataPage& page = window_.pages().data;
    wait_for([&] { return page.reader().state() == DataReader::State::done && page.tokens().detail().row.tokens > 0; },
             20000);
  }

  // Truncated rows with one of them selected.
  void data_details() {
    window_.document().set("data.max_len", 56);
    window_.document().set("data.overlong", "truncate");
    DataPage& page = window_.pages().data;
    wait_for([&] { return page.reader().request().options.max_len == 56; }, 5000);
    show_data();
    page.filter().setCurrentIndex(static_cast<int>(RowFilter::truncated));
    wait_for([&] { return page.tokens().detail().row.state == data::RowState::truncated; }, 5000);
    page.tokens().set_current(54);
    shot("data-truncated");
    page.filter().setCurrentIndex(static_cast<int>(RowFilter::all));
    for (int i = 0; i < 2; ++i) window_.document().undo_stack().undo();
  }

  // A small one, of the shipped server.
  void show_envelope() {
    Document& document = window_.document();
    experiment::Experiment served =
        experiment::Experiment::load(options_.resources / "examples/paper-serve-v6e-8.json");
    served.set_value("sweep.request_rates", Json::array({1, 2, 4, 8, 16, 32}));
    served.set_value("sweep.input_lens", Json::array({1024}));
    served.set_value("sweep.output_len", 64);
    document.replace(served, QStringLiteral("tour"));
    window_.show_page(Page::serve);
    window_.pages().serve.show_envelope();
    EnvelopeTab& tab = window_.pages().serve.envelope();
    wait_for([&] { return !tab.note().isEmpty(); }, 10000);
    shot("envelope-empty");
    tab.simulate();
    wait_for([&] { return !tab.is_busy(); }, 120000);
    shots("envelope");
    document.undo_stack().undo();
  }

  void serve_details() {
    window_.show_page(Page::serve);
    window_.pages().serve.show_kind(RunKind::size);
    const auto& stops = window_.pages().serve.sizes().link().stops();
    window_.pages().serve.sizes().link().set_playhead(stops[stops.size() / 2].value);
    window_.docks().panel.show_command();
    shot("serve-playhead-command");
    window_.docks().panel.show_form();
    window_.pages().serve.sizes().link().set_playhead(std::nullopt);
    window_.docks().panel.form().focus_key("size.batches");
    shot("serve-settings");
  }

  void details() {
    data_details();
    if (!size_run_.empty()) serve_details();
    window_.show_page(Page::train);
    const double last = window_.pages().train.link().data().high;
    window_.pages().train.link().set_playhead(last / 2);
    shot("train-playhead");
    window_.pages().train.link().show_range({last * 0.25, last * 0.6});
    window_.pages().train.loss().set_scale(Scale::logarithmic);
    shot("train-zoomed-log");
    window_.pages().train.loss().set_scale(Scale::linear);
    window_.pages().train.link().set_following(true);
    window_.pages().train.link().set_playhead(std::nullopt);
    window_.pages().train.loss().show_table(true);
    window_.pages().train.tabs().setCurrentIndex(1);
    shot("train-record-table");
    window_.pages().train.loss().show_table(false);
    window_.pages().train.tabs().setCurrentIndex(0);
    window_.docks().raise(u"log"_s);
    window_.docks().panel.show_json();
    shot("json-and-log");
    const std::string good = window_.document().json_text();
    window_.document().set_text(good.substr(0, good.rfind('}')));
    window_.docks().raise(u"problems"_s);
    shot("json-broken");
    window_.document().undo_stack().undo();
    window_.docks().panel.show_form();
    window_.document().set("lora.rank", 0);
    window_.document().set("train.learning_rate", "fast");
    window_.docks().panel.form().focus_key("lora.rank");
    shot("form-problems");
    window_.document().undo_stack().undo();
    window_.document().undo_stack().undo();
    window_.docks().panel.form().focus_key("lora.rslora");
    shot("form-advanced");
    window_.docks().panel.show_command();
    window_.docks().raise(u"jobs"_s);
    shot("command-and-jobs");
    window_.docks().panel.show_form();
    window_.docks().raise(u"problems"_s);
    window_.docks().bottom->set(DockState::collapsed);
    window_.open_palette();
    window_.palette_box().line().setText(u"ra"_s);
    shot("command-palette");
    window_.palette_box().hide();
  }

  // Pages are pictured in both themes and two sizes, everything else in one of each, unless the options say otherwise.
  void shots(const std::string& name) { shoot(name, {Shade::light, Shade::dark}, {kSmall, kLarge}); }
  void shot(const std::string& name) { shoot(name, {Shade::light}, {kSmall}); }

  void shoot(const std::string& name, std::vector<Shade> shades, const QList<QSize>& sizes) {
    if (!options_.shades.empty()) shades = options_.shades;
    // The theme that the window has comes first: changing it takes longer than the picture.
    std::ranges::stable_partition(shades, [](Shade shade) { return shade == theme().shade; });
    for (const Shade shade : shades)
      for (const QSize size : sizes_.isEmpty() ? sizes : sizes_) write(name, shade, size);
  }

  void write(const std::string& name, Shade shade, QSize size) {
    if (theme().shade != shade) window_.set_shade(shade);
    window_.resize(size);
    settle(180);
    const std::string file = name + (shade == Shade::dark ? "-dark" : "-light") + "-" + std::to_string(size.width()) +
                             "x" + std::to_string(size.height()) + ".png";
    make_folders(options_.out);
    const fs::path target = options_.out / file;
    write_png(window_.grab(), target);
    files_.push_back(target);
  }

  TourOptions options_;
  QList<QSize> sizes_;  // of the options
  MainWindow window_;
  store::RunId run_, size_run_;
  std::vector<store::RunId> sweeps_;
  std::vector<fs::path> files_;
};

}  // namespace

std::vector<fs::path> take_tour(int& argc, char** argv, const TourOptions& options) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  QApplication::setApplicationName(u"meshwright"_s);
  return Tour(options).take();
}

}  // namespace mw::ui
