// SPDX-License-Identifier: GPL-3.0-or-later
// `run`: the event stream, bit-identical reruns and resumes, and clean interruption.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <numeric>

#include "core/base/files.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/store/store.h"
#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kAdapter = "adapter_model.safetensors";

fs::path checkpoint(const Project& p, const std::string& run, long step) {
  return p.runs / run / ("checkpoint-" + std::to_string(step));
}

TEST(Run, PrintsDocumentedEvents) {
  const Project p;
  const Result r = meshwright(p.command("run"));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto events = lines(r.out);
  const auto find = [&](const std::string& kind) {
    for (const Json& e : events)
      if (e["event"] == kind) return e;
    return Json();
  };
  EXPECT_EQ(find("started")["run"], "run-1");
  const Json trainable = find("started")["info"]["trainable"];
  EXPECT_GT(trainable["params"].get<long>(), 0);
  EXPECT_EQ(trainable["bytes"].get<std::uintmax_t>(), fs::file_size(checkpoint(p, "run-1", 20) / kAdapter));
  EXPECT_EQ(events.back()["event"], "finished");
  EXPECT_EQ(events.back()["state"], "done");
  EXPECT_EQ(events.back()["steps"], 20);
  EXPECT_GT(events.back()["tokens"].get<long>(), 0);
  EXPECT_GT(events.back()["peak_bytes"].get<long>(), 0);
  for (const char* name : {"train/loss", "train/grad_norm", "train/learning_rate", "train/tokens_per_second"})
    EXPECT_EQ(metric(events, name).size(), 20u) << name;
  EXPECT_EQ(metric(events, "eval/loss").size(), 4u);  // before training, steps 8 and 16, after training
  EXPECT_EQ(metric(events, "eval/perplexity").size(), 4u);
  const Json memory = find("memory");
  EXPECT_GT(memory["bytes"]["weights"].get<long>(), 0);
  EXPECT_TRUE(fs::exists(find("checkpoint")["path"].get<std::string>() + "/adapter_config.json") ||
              fs::exists(checkpoint(p, "run-1", 20)));
  EXPECT_TRUE(fs::exists(checkpoint(p, "run-1", 20) / kAdapter));
  EXPECT_FALSE(fs::exists(checkpoint(p, "run-1", 5)));  // only the newest two are kept
}

TEST(Verify, NamesTheFirstBrokenItemOfARun) {
  const Project p;
  ASSERT_EQ(meshwright(p.command("run")).exit_code, 0);
  const auto verify = [&](const std::string& run) {
    return meshwright({"verify", run, "--json", "--runs-dir", p.runs.string()});
  };
  const Result intact = verify("run-1");
  ASSERT_EQ(intact.exit_code, 0) << intact.out << intact.err;
  const Json report = parse_json(intact.out, "verify");
  EXPECT_EQ(report["state"], "intact");
  EXPECT_EQ(report["checkpoints"], 2);
  EXPECT_GT(report["checkpoints_removed"], 0);
  EXPECT_EQ(report["first_broken"], nullptr);
  const fs::path file = checkpoint(p, "run-1", 20) / kAdapter;
  std::string bytes = bytes_of(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file_atomically(file, bytes);
  const Result broken = verify("run-1");
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_EQ(parse_json(broken.out, "verify")["first_broken"]["item"], "checkpoint at step 20");
  EXPECT_EQ(verify("run-7").exit_code, 2);
}

TEST(Run, LossFalls) {
  const Project p;
  const auto loss = metric(lines(meshwright(p.command("run", {"--set", "train.steps=60", "--set", "train.method=full",
                                                              "--set", "train.learning_rate=0.01"}))
                                     .out),
                           "train/loss");
  ASSERT_EQ(loss.size(), 60u);
  const auto mean = [&](size_t from) {
    return std::accumulate(loss.begin() + static_cast<long>(from), loss.begin() + static_cast<long>(from) + 10, 0.0) /
           10;
  };
  EXPECT_LT(mean(50), 0.6 * mean(0));
}

TEST(Run, SameSeedGivesSameBits) {
  const Project a, b;
  const Result ra = meshwright(a.command("run")), rb = meshwright(b.command("run"));
  ASSERT_EQ(ra.exit_code, 0) << ra.err;
  EXPECT_EQ(metric(lines(ra.out), "train/loss"), metric(lines(rb.out), "train/loss"));
  EXPECT_EQ(metric(lines(ra.out), "train/grad_norm"), metric(lines(rb.out), "train/grad_norm"));
  EXPECT_EQ(bytes_of(checkpoint(a, "run-1", 20) / kAdapter), bytes_of(checkpoint(b, "run-1", 20) / kAdapter));
  const Project c;
  meshwright(c.command("run", {"--set", "train.seed=8"}));
  EXPECT_NE(bytes_of(checkpoint(a, "run-1", 20) / kAdapter), bytes_of(checkpoint(c, "run-1", 20) / kAdapter));
}

class Killed : public testing::TestWithParam<int> {};

TEST_P(Killed, ResumesBitIdentically) {
  const Project whole, cut;
  const auto expected = lines(meshwright(whole.command("run")).out);
  bool killed = false;
  const Result first = meshwright(cut.command("run"), [&](pid_t pid, const std::string& line) {
    if (killed || line.find("\"train/loss\",\"step\":" + std::to_string(GetParam()) + ",") == std::string::npos) return;
    killed = true;
    ::kill(pid, SIGKILL);
  });
  ASSERT_EQ(first.exit_code, 128 + SIGKILL);
  const Result second = meshwright({"run", "--resume", "run-1", "--runs-dir", cut.runs.string(), "--json"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  for (const char* file : {kAdapter, "trainer_state.safetensors"})
    EXPECT_EQ(bytes_of(checkpoint(whole, "run-1", 20) / file), bytes_of(checkpoint(cut, "run-1", 20) / file)) << file;
  // The losses after the resume are those of the uninterrupted run, and the record holds each step once.
  const auto all = metric(expected, "train/loss"), rest = metric(lines(second.out), "train/loss");
  EXPECT_EQ(std::vector<double>(all.end() - static_cast<long>(rest.size()), all.end()), rest);
  EXPECT_EQ(lines(second.out).back()["tokens"], expected.back()["tokens"]);
}

// Sets MESHWRIGHT_CPU for the programs that are started.
struct HeldTo {
  explicit HeldTo(const char* cpu) { ::setenv("MESHWRIGHT_CPU", cpu, 1); }
  ~HeldTo() { ::unsetenv("MESHWRIGHT_CPU"); }
  HeldTo(const HeldTo&) = delete;
  HeldTo& operator=(const HeldTo&) = delete;
};

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}

// Every class of x86-64 from AVX2 on but AMX; where the processor lacks one, the best below it repeats.
TEST(ProcessorClasses, GiveARunTheSameBits) {
  if (!has_avx2()) GTEST_SKIP() << "the processor has one class";
  for (const char* dtype : {"f32", "bf16"}) {
    std::string first;
    for (const char* cpu : {"avx2", "avx512", "avx512_vnni", "avx512_bf16"}) {
      const HeldTo held(cpu);
      const Project p;
      const Result r = meshwright(p.command("run", {"--set", std::string("train.dtype=") + dtype}));
      ASSERT_EQ(r.exit_code, 0) << r.err;
      const std::string adapter = bytes_of(checkpoint(p, "run-1", 20) / kAdapter);
      if (first.empty()) first = adapter;
      EXPECT_TRUE(adapter == first) << dtype << ", " << cpu;
      Json device;
      for (const Json& e : lines(r.out))
        if (e["event"] == "started") device = e["info"]["device"];
      EXPECT_EQ(device["arithmetic"], "fma") << device.dump();
      EXPECT_THAT(device["kernels"].get<std::string>(), HasSubstr("packed"));
    }
  }
}

// A checkpoint that names other arithmetic than this processor has, other threads, or neither, as version 1.0.
TEST(Resuming, SaysWhereTheLastBitsMayDiffer) {
  const HeldTo held("base");
  const auto warning = [](const std::function<void(Json&)>& change) {
    const Project p;
    EXPECT_EQ(
        meshwright(p.command("run", {"--set", "train.checkpoint_every=10", "--set", "budget.tokens=1"})).exit_code, 0);
    const fs::path file = checkpoint(p, "run-1", 1) / "trainer_state.json";
    Json state = read_json(file);
    change(state);
    write_file_atomically(file, state.dump());
    const Result r =
        meshwright({"run", "--resume", "run-1", "--runs-dir", p.runs.string(), "--json", "--set", "budget.tokens=0"});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    std::string all;
    for (const Json& e : lines(r.out))
      if (e["event"] == "log" && e["level"] == "warning") all += e["text"].get<std::string>();
    return all;
  };
  EXPECT_EQ(warning([](Json&) {}), "");
  EXPECT_THAT(warning([](Json& j) { j["arithmetic"] = "amx"; }), HasSubstr("amx, which this processor lacks"));
  EXPECT_THAT(warning([](Json& j) { j["arithmetic"] = "sve2"; }), HasSubstr("the arithmetic sve2, which"));
  EXPECT_THAT(warning([](Json& j) { j["mesh"] = "fsdp 4"; }), HasSubstr("on fsdp 4 and this run has one device"));
  EXPECT_THAT(warning([](Json& j) { j["threads"] = 77; }), HasSubstr("77 threads"));
  EXPECT_THAT(warning([](Json& j) { j.erase("arithmetic"), j.erase("threads"); }),
              HasSubstr("does not name the arithmetic"));
}

TEST(ProcessorClasses, AWrongNameEndsEveryCommandAtItsStart) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"plan", std::string(MW_RESOURCES) + "/examples/tiny-lora.json"}, {"runs"}}) {
    const HeldTo held("pentium");
    const Result r = meshwright(command);
    EXPECT_EQ(r.exit_code, 2) << command[0];
    EXPECT_THAT(r.err, AllOf(HasSubstr("MESHWRIGHT_CPU"), HasSubstr("pentium"), HasSubstr("avx512_bf16")))
        << command[0];
  }
  const HeldTo held("BASE");
  EXPECT_EQ(meshwright({"runs", "--runs-dir", Project().runs.string()}).exit_code, 0);
}

// Fields that no version writes are damage.
TEST(Resuming, RefusesImpossiblePlaces) {
  const Project p;
  EXPECT_EQ(meshwright(p.command("run", {"--set", "train.checkpoint_every=10", "--set", "budget.tokens=1"})).exit_code,
            0);
  const fs::path file = checkpoint(p, "run-1", 1) / "trainer_state.json";
  const Json good = read_json(file);
  for (const auto& [key, value] : std::vector<std::pair<std::string, Json>>{{"arithmetic", 5},
                                                                            {"arithmetic", Json::array({"fma"})},
                                                                            {"mesh", 7},
                                                                            {"threads", 0},
                                                                            {"threads", -3},
                                                                            {"threads", 4294967298},
                                                                            {"threads", "two"}}) {
    Json bad = good;
    bad[key] = value;
    write_file_atomically(file, bad.dump());
    const Result r = meshwright({"run", "--resume", "run-1", "--runs-dir", p.runs.string()});
    EXPECT_NE(r.exit_code, 0) << key << " " << value;
    EXPECT_THAT(r.err, AllOf(HasSubstr("trainer_state.json"), HasSubstr(key))) << value;
  }
}

// Begun under one class and ended under another: the bits of an uninterrupted run, or a warning.
TEST(Resuming, KeepsTheBitsOrWarnsOnEveryClass) {
  if (!has_avx2()) GTEST_SKIP() << "the processor has one class";
  struct Part {
    std::string adapter, warning;
  };
  const auto run = [](const char* first, const char* second) {
    const Project p;
    {
      const HeldTo held(first);
      EXPECT_EQ(
          meshwright(p.command("run", {"--set", "train.checkpoint_every=5", "--set", "budget.tokens=1"})).exit_code, 0);
    }
    const HeldTo held(second);
    const Result r =
        meshwright({"run", "--resume", "run-1", "--runs-dir", p.runs.string(), "--json", "--set", "budget.tokens=0"});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    Part part{bytes_of(checkpoint(p, "run-1", 20) / kAdapter), {}};
    for (const Json& e : lines(r.out))
      if (e["event"] == "log" && e["level"] == "warning") part.warning += e["text"].get<std::string>();
    return part;
  };
  for (const char* first : {"base", "avx2"}) {
    const std::string uninterrupted = run(first, first).adapter;
    for (const char* second : {"base", "avx2", "amx"}) {
      const Part part = run(first, second);
      EXPECT_NE(part.adapter == uninterrupted, part.warning.find("differ in their last bits") != std::string::npos)
          << first << ", then " << second << ": " << part.warning;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AtStep, Killed, testing::Values(1, 5, 6, 9, 13, 19));

class Budget : public testing::TestWithParam<const char*> {};

TEST_P(Budget, EndsTheRunWithACheckpointAndALargerOneContinuesItBitIdentically) {
  const Project whole, cut;
  const auto expected = lines(meshwright(whole.command("run")).out);
  const std::string limit = GetParam();
  const double tokens = expected.back()["tokens"].get<double>(), seconds = expected.back()["seconds"].get<double>();
  const std::string value = limit == "budget.tokens"  ? std::to_string(0.5 * tokens)
                            : limit == "budget.hours" ? "1e-9"  // one step, which is always made
                                                      : std::to_string(0.1 * seconds / 3600);
  const Result first =
      meshwright(cut.command("run", {"--set", limit + "=" + value, "--set", "price.usd_per_chip_hour=1"}));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const auto events = lines(first.out);
  const Json last = events.back();
  EXPECT_EQ(last["state"], "done");
  EXPECT_TRUE(last["summary"]["budget"]["spent"].get<bool>());
  const long step = last["steps"].get<long>();
  ASSERT_GT(step, 0);
  ASSERT_LT(step, 20);
  EXPECT_EQ(last["summary"]["budget"]["steps_left"], 20 - step);
  if (limit == "budget.tokens") {
    EXPECT_LE(last["tokens"].get<double>(), 0.5 * tokens);
  }
  EXPECT_TRUE(fs::exists(checkpoint(cut, "run-1", step) / kAdapter));
  const auto left = metric(events, "budget/left");
  ASSERT_EQ(left.size(), static_cast<size_t>(step));
  EXPECT_TRUE(std::is_sorted(left.rbegin(), left.rend()));
  const Result second =
      meshwright({"run", "--resume", "run-1", "--runs-dir", cut.runs.string(), "--json", "--set", limit + "=0"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(lines(second.out).back()["steps"], 20);
  for (const char* file : {kAdapter, "trainer_state.safetensors"})
    EXPECT_EQ(bytes_of(checkpoint(whole, "run-1", 20) / file), bytes_of(checkpoint(cut, "run-1", 20) / file)) << file;
}

INSTANTIATE_TEST_SUITE_P(Of, Budget, testing::Values("budget.tokens", "budget.hours", "budget.usd"),
                         [](const auto& limit) { return std::string(limit.param).substr(7); });

TEST(Run, ABudgetInDollarsNeedsAPrice) {
  const Project p;
  const Result r = meshwright(p.command("run", {"--set", "budget.usd=1"}));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.err, HasSubstr("price.usd_per_chip_hour"));
}

// Sends the signal after `moment` printed lines.
OnLine kill_at(size_t moment, int signal) {
  return [moment, signal, line = size_t{0}](pid_t pid, const std::string&) mutable {
    if (++line == moment) ::kill(pid, signal);
  };
}

// The training part of a record: without times, speeds and the start, progress and messages of a process.
std::vector<std::string> stored(const Project& p) {
  std::vector<std::string> all;
  for (const store::StoredEvent& s : store::Store(p.runs).events("run-1")) {
    Json e = to_json(Event{0, s.event.body}, "");
    const std::string kind = e["event"], name = e.value("name", "");
    const bool of_the_training = kind == "metric" || kind == "sample" || kind == "checkpoint" || kind == "finished" ||
                                 (kind == "memory" && e["phase"] != "load");
    if (!of_the_training || name == "train/tokens_per_second") continue;
    if (kind == "checkpoint") e.erase("path");
    if (kind == "memory") e.erase("bytes");  // depends on the process: after a resume there are no step buffers yet
    if (kind == "finished") e.erase("seconds"), e.erase("summary");
    all.push_back(e.dump());
  }
  return all;
}

class KilledAtMoment : public testing::TestWithParam<size_t> {
 protected:
  static void expect_the_same_record(const std::vector<std::string>& sets) {
    const Project whole, cut;
    ASSERT_EQ(meshwright(whole.command("run", sets)).exit_code, 0);
    const Result first = meshwright(cut.command("run", sets), kill_at(GetParam(), SIGKILL));
    if (first.exit_code == 0) return;  // the run ended before the signal
    ASSERT_EQ(first.exit_code, 128 + SIGKILL);
    const Result second = meshwright({"run", "--resume", "run-1", "--runs-dir", cut.runs.string(), "--json"});
    ASSERT_EQ(second.exit_code, 0) << second.err;
    EXPECT_EQ(stored(whole), stored(cut));
    const Result verified = meshwright({"verify", "run-1", "--runs-dir", cut.runs.string()});
    EXPECT_EQ(verified.exit_code, 0) << verified.out;
  }
};

TEST_P(KilledAtMoment, ResumesWithTheRecordOfAnUninterruptedRun) {
  expect_the_same_record({"--set", "train.answers=2", "--set", "train.sample_every=4", "--set",
                          "train.sample_prompts=1", "--set", "sample.max_new_tokens=2", "--set", "train.steps=10"});
}
// 10 steps with a checkpoint every 5: kills before, at and after the evaluation of step 0, within steps, at checkpoints
// and after the last step.
INSTANTIATE_TEST_SUITE_P(Run, KilledAtMoment, testing::Values(1, 8, 16, 37, 52, 64, 82, 90, 94, 98, 103, 107));

TEST(Run, KilledBeforeTheFirstCheckpointStoresTheEvaluationOfStepZeroOnce) {
  const Project p;
  const Result first = meshwright(p.command("run"), [&](pid_t pid, const std::string& line) {
    if (line.find("\"train/loss\",\"step\":2,") != std::string::npos) ::kill(pid, SIGKILL);
  });
  ASSERT_EQ(first.exit_code, 128 + SIGKILL);
  ASSERT_FALSE(fs::exists(checkpoint(p, "run-1", 5)));
  ASSERT_EQ(meshwright({"run", "--resume", "run-1", "--runs-dir", p.runs.string(), "--json"}).exit_code, 0);
  long evaluations = 0, starts = 0;
  for (const store::StoredEvent& s : store::Store(p.runs).events("run-1")) {
    const auto* m = std::get_if<event::Metric>(&s.event.body);
    evaluations += m && m->name == "eval/loss" && m->step == 0;
    starts += std::holds_alternative<event::Started>(s.event.body);
  }
  EXPECT_EQ(evaluations, 1);
  EXPECT_EQ(starts, 1);
}

class Stopped : public testing::TestWithParam<int> {};

TEST_P(Stopped, KeepsFinishedSteps) {
  const Project p;
  bool sent = false;
  const Result r = meshwright(p.command("run", {"--set", "train.steps=5000", "--set", "train.checkpoint_every=0"}),
                              [&](pid_t pid, const std::string& line) {
                                if (sent || line.find("\"train/loss\",\"step\":7,") == std::string::npos) return;
                                sent = true;
                                ::kill(pid, GetParam());
                                // Both the system and the shell may report the closed terminal.
                                if (GetParam() == SIGHUP || GetParam() == SIGPIPE) ::kill(pid, GetParam());
                              });
  EXPECT_EQ(r.exit_code, 130) << r.err;
  EXPECT_THAT(r.err, HasSubstr("stopping"));
  const Json last = lines(r.out).back();
  EXPECT_EQ(last["state"], "cancelled");
  const long steps = last["steps"].get<long>();
  EXPECT_GE(steps, 7);
  EXPECT_TRUE(fs::exists(checkpoint(p, "run-1", steps) / kAdapter));
}

INSTANTIATE_TEST_SUITE_P(BySignal, Stopped, testing::Values(SIGINT, SIGTERM, SIGHUP, SIGPIPE));

TEST(Run, ListsTheRunAfterwards) {
  const Project p;
  meshwright(p.command("run", {"--set", "name=first"}));
  const Result r = meshwright({"runs", "--runs-dir", p.runs.string(), "--json"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json row = parse_json(r.out, "runs").at("rows").at(0);
  EXPECT_EQ(row["id"], "run-1");
  EXPECT_EQ(row["name"], "first");
  EXPECT_EQ(row["state"], "done");
  EXPECT_EQ(row["steps"], 20);
}

TEST(Run, LocksTheRunAgainstOtherProcesses) {
  const Project p;
  bool tried = false;
  Result second;
  const Result first =
      meshwright(p.command("run", {"--set", "train.steps=400"}), [&](pid_t pid, const std::string& line) {
        if (tried || line.find("\"train/loss\",\"step\":6,") == std::string::npos) return;
        tried = true;
        second = meshwright({"run", "--resume", "run-1", "--runs-dir", p.runs.string(), "--json"});
        ::kill(pid, SIGINT);
      });
  ASSERT_TRUE(tried);
  EXPECT_NE(second.exit_code, 0);
  EXPECT_THAT(second.err, HasSubstr("run-1"));
  EXPECT_EQ(first.exit_code, 130);
}

TEST(Run, FullTrainingWritesAModelThatLoads) {
  const Project p;
  const Result r = meshwright(p.command("run", {"--set", "train.method=full", "--set", "train.learning_rate=0.003"}));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const fs::path folder = checkpoint(p, "run-1", 20);
  const Result again =
      meshwright({"generate", p.experiment.string(), "--set", "model.path=" + folder.string(), "--set",
                  "model.init=load", "--prompt", "Which colour", "--json", "--runs-dir", p.runs.string()});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(parse_json(again.out, "generate").contains("text"));
  const Result inspected = meshwright({"inspect", folder.string(), "--json"});
  EXPECT_EQ(parse_json(inspected.out, "inspect")["kind"], "checkpoint");
  EXPECT_FALSE(parse_json(inspected.out, "inspect")["engine"]["bf16"].get<std::string>().empty());
}

TEST(Generate, PrintsBaseAndTunedAnswers) {
  const Project p;
  ASSERT_EQ(meshwright(p.command("run", {"--set", "train.steps=60"})).exit_code, 0);
  const Result r =
      meshwright(p.command("generate", {"--run-id", "run-1", "--prompt", "Which colour has the ball number 5?"}));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json j = parse_json(r.out, "generate");
  EXPECT_NE(j["text"], j["base_text"]);
  EXPECT_GE(j["tokens"].get<int>(), 1);

  // Logits of the tuned model at every position of each prompt.
  const std::string file = (p.runs / "logits.safetensors").string();
  const Result again =
      meshwright(p.command("generate", {"--run-id", "run-1", "--prompt", "Which colour has the ball number 5?",
                                        "--prompt", "Which", "--logits", file, "--set", "sample.max_new_tokens=1"}));
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const formats::SafetensorsFile logits(file);
  ASSERT_EQ(logits.tensors().size(), 4u);
  for (const char* prompt : {"0", "1"}) {
    const auto* ids = logits.find(std::string(prompt) + ".ids");
    const auto* values = logits.find(std::string(prompt) + ".logits");
    ASSERT_TRUE(ids && values);
    EXPECT_EQ(ids->shape.front(), values->shape.front());
    EXPECT_GT(values->shape.back(), 100);
  }
}

TEST(Plan, PrintsDocumentedJsonCloseToMeasuredMemory) {
  const Project p;
  const Result plan = meshwright(p.command("plan"));
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const Json j = parse_json(plan.out, "plan");
  for (const char* key : {"target", "fits", "devices", "step", "run", "diagnostics", "sources"})
    EXPECT_TRUE(j.contains(key)) << key;
  EXPECT_EQ(j["fits"], true);
  const double predicted = j["devices"][0]["memory"]["total"].get<double>();
  const double measured = lines(meshwright(p.command("run")).out).back()["peak_bytes"].get<double>();
  EXPECT_NEAR(predicted / measured, 1, 0.1);
}

}  // namespace
}  // namespace mw::test
