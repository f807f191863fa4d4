// SPDX-License-Identifier: GPL-3.0-or-later
// Shared by the tests of core/launch: an experiment, a job that prints slowly with the recipe's events.py, and checks
// of the record.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "core/launch/launch.h"
#include "core/views/run_view.h"
#include "tests/store/store_fixture.h"

namespace mw::launch {

struct Launching : testing::Test {
  static constexpr int kSteps = 25;
  test::Scratch folder;
  std::vector<Event> heard;
  std::stop_source detach, cancel;

  static experiment::Experiment experiment() {
    experiment::Experiment e;
    e.set_value("name", "It's a launch");
    e.set_value("model.id", "gemma3-270m");
    e.set_value("train.steps", kSteps);
    return e;
  }
  // Prints every event in two pieces, followed by text on standard error, and writes an adapter. It uses the events.py
  // of the recipe, so it needs the uploaded files.
  std::string command(double pause_s) const {
    const std::string steps = std::to_string(kSteps), pause = std::to_string(pause_s);
    write_file_atomically(folder.path() / "job.py", R"(import json, pathlib, sys, time, events
here = pathlib.Path(__file__).parent
for step in range(1, )" + steps + R"( + 1):
    while (here / ("wait-%d" % step)).exists():
        time.sleep(0.01)
    text = json.dumps({"event": "metric", "name": "train/loss", "step": step, "value": 1 / step})
    for part in (text[:20], text[20:] + "\n"):
        sys.__stdout__.write(part)
        sys.__stdout__.flush()
        time.sleep()" + pause + R"()
    print("said", step, flush=True)
adapter = pathlib.Path("out/adapter")
adapter.mkdir(parents=True)
(adapter / "adapter_config.json").write_text("{}")
(adapter / "adapter_model.safetensors").write_bytes(bytes(range(256)) * 999)
events.finished("done", )" + steps + R"(, tokens=7)
)");
    return "PYTHONPATH=. python3 " + (folder.path() / "job.py").string();
  }
  void hold(int step) const { write_file_atomically(folder.path() / ("wait-" + std::to_string(step)), ""); }
  void let_go(int step) const { std::filesystem::remove(folder.path() / ("wait-" + std::to_string(step))); }
  LaunchRequest request(const std::string& on, const std::string& shell) const {
    LaunchRequest r{.experiment = experiment(), .target = parse_target(on, MW_RESOURCES "/launch")};
    r.command = shell;
    r.folder = (folder.path() / "there").string();
    r.runs_folder = folder.path() / "runs";
    r.resources = MW_RESOURCES;
    r.timing.first_wait = std::chrono::milliseconds(50);
    return r;
  }
  // A request whose recipe contains data of more than one piece.
  LaunchRequest with_data(const std::string& on, const std::string& shell) const {
    LaunchRequest r = request(on, shell);
    r.experiment = experiment::Experiment::load(MW_RESOURCES "/examples/tiny-lora.json");
    r.recipe = model::Stack::trl_fsdp;
    return r;
  }
  std::vector<std::string> logged(const store::RunId& run, const std::string& part) const {
    std::vector<std::string> out;
    const store::Store store(folder.path() / "runs");
    for (const auto& stored : store.events(run))
      if (const auto* l = std::get_if<event::Log>(&stored.event.body); l && l->text.find(part) != std::string::npos)
        out.push_back(l->text);
    return out;
  }
  // Remains of an upload, or an incomplete job folder.
  std::vector<std::string> left_beside() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      if (const std::string name = entry.path().filename(); name.starts_with("there")) out.push_back(name);
    return out;
  }
  void expect_whole_recipe(const store::RunId& run) const {
    namespace fs = std::filesystem;
    const fs::path sent = folder.path() / "runs" / run / "recipe";
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(sent))
      if (entry.is_regular_file()) {
        ++files;
        const fs::path there = folder.path() / "there" / fs::relative(entry.path(), sent);
        ASSERT_TRUE(fs::is_regular_file(there)) << there;
        EXPECT_EQ(read_file(there, 64 << 20), read_file(entry.path(), 64 << 20)) << there;
        EXPECT_EQ(fs::status(there).permissions(), entry.status().permissions()) << there;
      }
    EXPECT_GT(files, 5);
    EXPECT_THAT(left_beside(), testing::ElementsAre("there"));
  }
  EventSink sink() {
    return [this](const Event& e) { heard.push_back(e); };
  }
  LaunchResult go(const LaunchRequest& r) {
    return launch(r, plan::PlanContext::load(MW_RESOURCES "/hardware"), sink(),
                  {detach.get_token(), cancel.get_token()});
  }
  LaunchResult go_on(const store::RunId& run) {
    return reattach({.run = run, .runs_folder = folder.path() / "runs", .resources = MW_RESOURCES}, sink(),
                    {detach.get_token(), cancel.get_token()});
  }
  std::string refusal(const LaunchRequest& r) {
    return test::error_id([&] { go(r); });
  }

  // Checks that the record has every line of the job once, in order, and that the adapter is complete.
  void expect_whole_record(const store::RunId& run) const {
    const store::Store store(folder.path() / "runs");
    std::vector<long> steps, said;
    int finished = 0;
    for (const auto& stored : store.events(run)) {
      EXPECT_EQ(finished, 0) << "an event after the last word";
      if (const auto* m = std::get_if<event::Metric>(&stored.event.body)) steps.push_back(m->step);
      if (const auto* l = std::get_if<event::Log>(&stored.event.body); l && l->text.starts_with("said "))
        said.push_back(std::stol(l->text.substr(5)));
      finished += std::holds_alternative<event::Finished>(stored.event.body);
    }
    std::vector<long> all;
    for (int step = 1; step <= kSteps; ++step) all.push_back(step);
    EXPECT_EQ(steps, all);
    EXPECT_EQ(said, all);
    EXPECT_EQ(finished, 1);
    const auto row = store.find(run);
    EXPECT_EQ(row->state, RunState::done);
    EXPECT_EQ(row->tokens, 7);
    const auto offer = merge_offer(store, run);
    ASSERT_TRUE(offer);
    std::string bytes;
    for (int i = 0; i < 999 * 256; ++i) bytes += static_cast<char>(i % 256);
    EXPECT_EQ(read_file(offer->adapter / "adapter_model.safetensors"), bytes);
    EXPECT_EQ(read_file(offer->adapter / "adapter_config.json"), "{}");
  }
};

}  // namespace mw::launch
