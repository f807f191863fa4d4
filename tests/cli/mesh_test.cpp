// SPDX-License-Identifier: GPL-3.0-or-later
// Runs on a mesh: events of every device, the losses of one device, resuming on the same and on another mesh, --prove,
// and the report of a mesh that does not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <set>

#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::vector<std::string> kMesh{"--set", "mesh.fsdp=2", "--set", "mesh.tp=2"};

std::vector<std::string> on_mesh(std::vector<std::string> more, const std::vector<std::string>& mesh = kMesh) {
  more.insert(more.end(), mesh.begin(), mesh.end());
  return more;
}

std::vector<Json> of_kind(const std::vector<Json>& events, const std::string& kind) {
  std::vector<Json> found;
  for (const Json& e : events)
    if (e["event"] == kind) found.push_back(e);
  return found;
}

fs::path checkpoint(const Project& p, long step) {
  return p.runs / "run-1" / ("checkpoint-" + std::to_string(step));
}

TEST(MeshRun, LossesMatchOneDevice) {
  const Project one, mesh;
  const Result alone = meshwright(one.command("run")), together = meshwright(mesh.command("run", kMesh));
  ASSERT_EQ(together.exit_code, 0) << together.err;
  const auto a = metric(lines(alone.out), "train/loss"), b = metric(lines(together.out), "train/loss");
  ASSERT_EQ(b.size(), 20u);
  for (size_t i = 0; i < 10; ++i) EXPECT_NEAR(b[i] / a[i], 1, 1e-5) << "step " << i + 1;
  const auto before = metric(lines(alone.out), "eval/loss"), eval = metric(lines(together.out), "eval/loss");
  ASSERT_EQ(eval.size(), before.size());
  EXPECT_NEAR(eval[0] / before[0], 1, 1e-5);
}

TEST(MeshRun, RejectsMistypedAxisAndReportsUnusedAxis) {
  const Project p;
  for (const char* command : {"run", "plan"}) {
    const Result r = meshwright(p.command(command, {"--set", "mesh.fdsp=2"}));
    EXPECT_THAT(r.out + r.err, HasSubstr("did you mean fsdp?")) << command;
    EXPECT_EQ(r.exit_code, 2) << command;
  }
  const std::vector<std::string> own{"--set", "mesh.spare=2", "--set", "train.steps=1"};
  const Result plan = meshwright(p.command("plan", own)), run = meshwright(p.command("run", own));
  EXPECT_THAT(plan.out, HasSubstr("MESH-2"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("no tensor is split over the mesh axis 'spare'"));
}

TEST(MeshRun, ReportsMemoryAndTrafficOfEveryDevice) {
  const Project p;
  const Result r = meshwright(p.command("run", kMesh));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto events = lines(r.out);
  const Json info = of_kind(events, "started").at(0)["info"];
  EXPECT_EQ(info["devices"], 4);
  EXPECT_EQ(info["mesh"]["axes"], Json::parse(R"([{"name":"fsdp","size":2},{"name":"tp","size":2}])"));
  std::set<int> devices;
  long peak = 0;
  for (const Json& m : of_kind(events, "memory")) {
    devices.insert(m["device"].get<int>());
    EXPECT_GT(m["bytes"]["weights"].get<long>(), 0);
    peak = std::max(peak, m["peak"].get<long>());
  }
  EXPECT_EQ(devices, (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(events.back()["peak_bytes"], peak);
  const auto traffic = of_kind(events, "traffic");
  ASSERT_EQ(traffic.size(), 20u);
  for (const Json& t : traffic) {
    long of_entries = 0, of_devices = 0;
    for (const Json& e : t["entries"]) {
      of_entries += e["bytes"].get<long>();
      EXPECT_EQ(e["planned"], e["bytes"]) << e;  // for the tokens of this step
    }
    for (const Json& d : t["devices"]) of_devices += d["bytes"].get<long>();
    EXPECT_EQ(t["devices"].size(), 4u);
    EXPECT_GT(of_entries, 0);
    EXPECT_EQ(of_entries, of_devices);
  }
  EXPECT_TRUE(of_kind(lines(meshwright(p.command("run")).out), "traffic").empty());  // one device has no traffic
}

TEST(MeshRun, ResumesBitIdenticallyAfterKill) {
  const Project whole, cut;
  ASSERT_EQ(meshwright(whole.command("run", kMesh)).exit_code, 0);
  bool killed = false;
  const Result first = meshwright(cut.command("run", kMesh), [&](pid_t pid, const std::string& line) {
    if (killed || line.find("\"train/loss\",\"step\":8,") == std::string::npos) return;
    killed = true;
    ::kill(pid, SIGKILL);
  });
  ASSERT_EQ(first.exit_code, 128 + SIGKILL);
  const Result second = meshwright({"run", "--resume", "run-1", "--runs-dir", cut.runs.string(), "--json"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  for (const char* file : {"adapter_model.safetensors", "trainer_state.safetensors"})
    EXPECT_EQ(bytes_of(checkpoint(whole, 20) / file), bytes_of(checkpoint(cut, 20) / file)) << file;
}

TEST(MeshRun, ResumesOnAnotherMesh) {
  const Project whole, moved;
  const auto expected = metric(lines(meshwright(whole.command("run")).out), "train/loss");
  bool stopped = false;
  meshwright(moved.command("run", kMesh), [&](pid_t pid, const std::string& line) {
    if (stopped || line.find("\"train/loss\",\"step\":9,") == std::string::npos) return;
    stopped = true;
    ::kill(pid, SIGINT);
  });
  const Result second = meshwright({"run", "--resume", "run-1", "--runs-dir", moved.runs.string(), "--json", "--set",
                                    "mesh.fsdp=4", "--set", "mesh.tp=1"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  const auto rest = metric(lines(second.out), "train/loss");
  ASSERT_GT(rest.size(), 5u);
  EXPECT_NEAR(rest.back() / expected.back(), 1, 1e-3);
  EXPECT_EQ(of_kind(lines(second.out), "started").at(0)["info"]["devices"], 4);
  // Keys other than the mesh cannot be changed on resume.
  const Result refused = meshwright(
      {"run", "--resume", "run-1", "--runs-dir", moved.runs.string(), "--json", "--set", "train.learning_rate=1"});
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_THAT(refused.out + refused.err, HasSubstr("train.learning_rate"));
}

TEST(MeshRun, CtrlCKeepsFinishedSteps) {
  const Project p;
  bool sent = false;
  const Result r =
      meshwright(p.command("run", on_mesh({"--set", "train.steps=5000"})), [&](pid_t pid, const std::string& line) {
        if (sent || line.find("\"train/loss\",\"step\":7,") == std::string::npos) return;
        sent = true;
        ::kill(pid, SIGINT);
      });
  EXPECT_EQ(r.exit_code, 130) << r.err;
  const Json last = lines(r.out).back();
  EXPECT_EQ(last["state"], "cancelled");
  EXPECT_TRUE(fs::exists(checkpoint(p, last["steps"].get<long>()) / "adapter_model.safetensors"));
}

TEST(MeshRun, OutOfMemoryReportSuggestsChangesThatFit) {
  const Project p;
  const std::vector<std::string> small =
      on_mesh({"--set", "target.memory_gib=0.0037", "--set", "data.eval_fraction=0"});
  const Result r = meshwright(p.command("run", small));
  ASSERT_EQ(r.exit_code, 1) << r.out << r.err;
  const Json last = lines(r.out).back();
  EXPECT_EQ(last["state"], "failed");
  const std::string error = last["error"].get<std::string>();
  for (const char* part : {"out of memory on device", "fsdp", "held", "largest"}) EXPECT_THAT(error, HasSubstr(part));
  const Json report = last["summary"]["out_of_memory"];
  for (const char* key : {"device", "category", "tensor", "phase"})
    EXPECT_FALSE(report[key].get<std::string>().empty()) << key;
  EXPECT_GT(report["wanted_bytes"].get<long>() + report["held"]["total"].get<long>(),
            report["capacity_bytes"].get<long>());
  // The record is kept, and the first suggested change works.
  const Json row = parse_json(meshwright({"runs", "--runs-dir", p.runs.string(), "--json"}).out, "runs")["rows"][0];
  EXPECT_EQ(row["state"], "failed");
  ASSERT_FALSE(report["fixes"].empty()) << error;
  // The smallest first, each with its price; more devices last.
  EXPECT_FALSE(report["fixes"][0]["edits"].begin().key().starts_with("mesh.")) << report["fixes"].dump();
  EXPECT_TRUE(report["fixes"][0]["slowdown"].is_number()) << report["fixes"].dump();
  for (size_t i = 0; i + 1 < report["fixes"].size(); ++i)
    EXPECT_FALSE(report["fixes"][i]["edits"].begin().key().starts_with("mesh.")) << report["fixes"].dump();
  for (const Json& fix : report["fixes"]) {
    std::vector<std::string> fixed = small;
    for (const auto& [key, value] : fix["edits"].items())
      fixed.insert(fixed.end(), {"--set", key + "=" + (value.is_string() ? value.get<std::string>() : value.dump())});
    const Result again = meshwright(p.command("run", fixed));
    EXPECT_EQ(again.exit_code, 0) << fix.dump() << again.err;
  }
}

TEST(MeshGenerate, MatchesOneDeviceWithLessMemoryPerDevice) {
  const Project p;
  ASSERT_EQ(meshwright(p.command("run", on_mesh({"--set", "train.steps=60"}))).exit_code, 0);
  const auto ask = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"--run-id", "run-1",     "--prompt", "Which colour has the ball number 5?",
                                 "--prompt", "Which dog?"};
    all.insert(all.end(), more.begin(), more.end());
    return meshwright(p.command("generate", all));
  };
  const Result alone = ask({}), together = ask(kMesh);
  ASSERT_EQ(together.exit_code, 0) << together.err;
  const Json one = parse_json(alone.out, "one"), mesh = parse_json(together.out, "mesh");
  EXPECT_EQ(mesh["answers"], one["answers"]);
  EXPECT_NE(mesh["answers"][0]["text"], mesh["answers"][0]["base_text"]);
  EXPECT_EQ(one["mesh"]["devices"], 1);
  EXPECT_EQ(mesh["mesh"], Json::parse(R"({"axes":[{"name":"fsdp","size":2},{"name":"tp","size":2}],"devices":4})"));
  // target.memory_gib is per device: quarters of the model fit beside a thread's workspace, the whole model does not.
  const std::vector<std::string> small{"--set", "target.memory_gib=0.0038"};
  EXPECT_EQ(ask(small).exit_code, 1) << "one device";
  const Result fits = ask(on_mesh(small));
  ASSERT_EQ(fits.exit_code, 0) << fits.err;
  EXPECT_EQ(parse_json(fits.out, "small")["answers"], one["answers"]);
}

TEST(Prove, PassesForEqualResults) {
  const Project p;
  const Result r = meshwright(p.command("run", on_mesh({"--prove"})));
  ASSERT_EQ(r.exit_code, 0) << r.out << r.err;
  const Json j = parse_json(r.out, "proof");
  EXPECT_EQ(j["verdict"], "pass") << j["broken"];
  EXPECT_EQ(j["steps"], 3);
  EXPECT_EQ(j["planned_bytes"], j["counted_bytes"]);
  EXPECT_GT(j["counted_bytes"].get<long>(), 0);
  std::set<std::string> parts;
  for (const Json& t : j["tensors"]) parts.insert(t["part"].get<std::string>());
  for (const char* part : {"weight", "value", "loss", "gradient", "gradient norm", "first moment", "second moment"})
    EXPECT_TRUE(parts.contains(part)) << part;
  EXPECT_FALSE(fs::exists(p.runs / "run-1"));  // no run is created
  const Result text =
      meshwright({"run", p.experiment.string(), "--prove", "--set", "mesh.tp=2", "--runs-dir", p.runs.string()});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, HasSubstr("proved"));
}

TEST(Prove, RejectsOneDevice) {
  const Project p;
  const Result r = meshwright(p.command("run", {"--prove"}));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.err, HasSubstr("mesh"));
}

TEST(MeshRun, RejectsImpossibleMeshBeforeCreatingARun) {
  const Project p;
  for (const std::vector<std::string>& mesh :
       {std::vector<std::string>{"--set", "mesh.tp=3"}, {"--set", "mesh.fsdp=128"}}) {
    const Result r = meshwright(p.command("run", mesh));
    EXPECT_EQ(r.exit_code, 2) << r.out << r.err;
    EXPECT_FALSE(fs::exists(p.runs / "run-1"));
  }
}

}  // namespace
}  // namespace mw::test
