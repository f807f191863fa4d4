// SPDX-License-Identifier: GPL-3.0-or-later
// Local launches through the shell and through templates: record, files and outcomes.
#include <signal.h>
#include <stdlib.h>

#include <thread>

#include "tests/launch/launch_fixture.h"

namespace mw::launch {
namespace {
namespace fs = std::filesystem;
using testing::HasSubstr;

// Adds a folder with programs at the front of PATH during its lifetime.
class FakePrograms {
 public:
  explicit FakePrograms(fs::path folder) : folder_(std::move(folder)), before_(::getenv("PATH")) {
    fs::create_directories(folder_);
    ::setenv("PATH", (folder_.string() + ":" + before_).c_str(), 1);
  }
  ~FakePrograms() { ::setenv("PATH", before_.c_str(), 1); }
  FakePrograms(const FakePrograms&) = delete;
  FakePrograms& operator=(const FakePrograms&) = delete;
  void add(const std::string& name, const std::string& script) const {
    write_file_atomically(folder_ / name, "#!/bin/sh\n" + script + "\n");
    fs::permissions(folder_ / name, fs::perms::owner_all);
  }

 private:
  fs::path folder_;
  std::string before_;
};

TEST_F(Launching, RunsLocallyAndFetchesAdapter) {
  const LaunchResult l = go(request("local", command(0.002)));
  ASSERT_TRUE(l.finished);
  EXPECT_EQ(l.finished->state, RunState::done);
  expect_whole_record(l.run);
  const store::Store store(folder.path() / "runs");
  views::RunView live, stored;
  for (const Event& e : heard) live.feed(e);
  for (const auto& e : store.events(l.run)) stored.feed(e.event);
  EXPECT_EQ(live, stored);
  const std::string merge = l.finished->summary["merge"];
  EXPECT_THAT(merge, HasSubstr("meshwright merge --base MODEL --adapter '" +
                               (store.run_folder(l.run) / "fetched/out/adapter").string() + "'"));
  EXPECT_TRUE(fs::exists(folder.path() / "there" / "train.py"));
  EXPECT_FALSE(can_reattach(store, *store.find(l.run)));
  EXPECT_EQ(test::error_id([&] { go_on(l.run); }), "LAUNCH-ENDED");
}

TEST_F(Launching, RunsProgramsOfTemplates) {
  const FakePrograms programs(folder.path() / "bin");
  programs.add("kubectl", R"(echo "$@" | head -c 60 >> "$0.log"; echo >> "$0.log"
while [ "$1" != -- ]; do shift; done; shift; exec "$@")");
  programs.add("gcloud", R"(echo "$@" | head -c 60 >> "$0.log"; echo >> "$0.log"
echo "Using ssh batch size of 1." ; for a; do case $a in --command=*) exec sh -c "${a#--command=}";; esac; done; exit 9)");
  LaunchRequest kubectl = request("kubectl:pod=trainer,namespace=ml", command(0.001));
  const LaunchResult k = go(kubectl);
  ASSERT_TRUE(k.finished);
  expect_whole_record(k.run);
  EXPECT_THAT(read_file(folder.path() / "bin/kubectl.log"), HasSubstr("--namespace=ml exec -i trainer -- sh -c"));
  LaunchRequest gcloud = request("gcloud-tpu:name=tpu,zone=us-east5-a", command(0.001));
  gcloud.folder = (folder.path() / "tpu vm's").string();
  const LaunchResult g = go(gcloud);
  ASSERT_TRUE(g.finished);
  expect_whole_record(g.run);
  EXPECT_THAT(read_file(folder.path() / "bin/gcloud.log"), HasSubstr("tpu-vm ssh tpu --zone=us-east5-a --worker=0"));
}

TEST_F(Launching, MergesEventsOfSeveralHostsIntoOneRun) {
  const FakePrograms programs(folder.path() / "bin");
  programs.add("ssh", R"(while [ "$1" != -- ]; do shift; done; exec sh -c "$3")");
  programs.add("trainer", R"(host='"host":{"process":'$JAX_PROCESS_ID',"name":"'$HOST_NAME'"}'
if [ "$JAX_PROCESS_ID" = 1 ]; then echo '{"event":"log","level":"warning","text":"warm",'$host'}'; exit; fi
echo '{"event":"metric","name":"train/loss","step":1,"value":2,'$host'}'
mkdir -p out/adapter && echo '{}' > out/adapter/adapter_config.json)");
  write_file_atomically(folder.path() / "hosts", "node0 " + (folder.path() / "a").string() + "\nme@node1:22 " +
                                                     (folder.path() / "b").string() + "\n");
  ::setenv("PYTHON", (folder.path() / "bin" / "trainer").c_str(), 1);
  const LaunchResult l = go(request("hosts:" + (folder.path() / "hosts").string(), ""));
  ::unsetenv("PYTHON");
  ASSERT_TRUE(l.finished);
  EXPECT_EQ(l.finished->state, RunState::done) << l.finished->error;
  const store::Store store(folder.path() / "runs");
  int of_hosts = 0;
  for (const auto& stored : store.events(l.run)) {
    const auto& host = stored.event.host;
    of_hosts += host.has_value();
    if (std::holds_alternative<event::Metric>(stored.event.body)) {
      EXPECT_EQ(host, (EventHost{0, "node0"}));
    } else if (host) {
      EXPECT_EQ(*host, (EventHost{1, "node1:22"}));
    }
  }
  EXPECT_EQ(of_hosts, 2);
  EXPECT_EQ(read_file(store.run_folder(l.run) / "fetched/out/adapter/adapter_config.json"), "{}\n");
  EXPECT_TRUE(fs::exists(folder.path() / "b" / "train.py"));
  LaunchRequest server = request("slurm", "");
  server.recipe = model::Stack::vllm_gpu;
  EXPECT_EQ(refusal(server), "LAUNCH-TARGET");
}

TEST_F(Launching, FailedJobIsFailedRunWithFetchedFiles) {
  LaunchRequest r = request("local", "echo working; echo oops >&2; mkdir -p out/logs; echo x > out/logs/x; exit 3");
  const LaunchResult l = go(r);
  ASSERT_TRUE(l.finished);
  EXPECT_EQ(l.finished->state, RunState::failed);
  EXPECT_THAT(l.finished->error, HasSubstr("exit code 3"));
  for (const char* line : {"working", "oops"}) EXPECT_THAT(logged(l.run, line), testing::Contains(line));
  const store::Store store(folder.path() / "runs");
  EXPECT_EQ(read_file(store.run_folder(l.run) / "fetched/out/logs/x"), "x\n");
  EXPECT_FALSE(merge_offer(store, l.run));
}

TEST_F(Launching, ReportsDetachAndCancel) {
  const EventSink wait_for_first = [this](const Event& e) {
    heard.push_back(e);
    if (std::holds_alternative<event::Metric>(e.body)) detach.request_stop();
  };
  const LaunchRequest r =
      request("local",
              "echo '{\"event\":\"metric\",\"name\":\"m\",\"step\":1,\"value\":1}'; mkdir -p out/adapter; echo x > "
              "out/adapter/x; exec sleep 600");
  const LaunchResult l =
      launch(r, plan::PlanContext::load(MW_RESOURCES "/hardware"), wait_for_first, {detach.get_token(), {}});
  EXPECT_FALSE(l.finished);
  {
    store::Store store(folder.path() / "runs");
    EXPECT_TRUE(store.recover().empty());  // its job goes on: not interrupted
    EXPECT_TRUE(can_reattach(store, *store.find(l.run)));
  }
  detach = {};
  cancel.request_stop();
  const LaunchResult end = go_on(l.run);
  ASSERT_TRUE(end.finished);
  EXPECT_EQ(end.finished->state, RunState::cancelled);
  EXPECT_EQ(end.finished->steps, 0);  // of train/: none
  store::Store store(folder.path() / "runs");
  EXPECT_TRUE(merge_offer(store, l.run));
}

// Kills the process at different stages.
TEST_F(Launching, ContinuesRecordAfterKill) {
  const LaunchRequest r = request("local", command(0.005));
  for (const int step : {1, 9, 20}) {
    const pid_t child = test::fork_child([&] {
      const EventSink dying = [&](const Event& e) {
        const auto* m = std::get_if<event::Metric>(&e.body);
        if (m && m->step >= step) ::kill(::getpid(), SIGKILL);
      };
      if (step == 1)
        launch(r, plan::PlanContext::load(MW_RESOURCES "/hardware"), dying, {});
      else
        reattach({"run-1", r.runs_folder, r.resources}, dying, {});
      return 0;
    });
    ASSERT_EQ(test::wait_for(child), -SIGKILL) << step;
    EXPECT_TRUE(store::Store(r.runs_folder).recover().empty());
  }
  ASSERT_TRUE(go_on("run-1").finished);
  expect_whole_record("run-1");
}

TEST_F(Launching, BadInputCreatesNoRun) {
  const std::string path = ::getenv("PATH");
  LaunchRequest r = request("local", "true");
  write_file_atomically(folder.path() / "there" / "mine", "x");
  EXPECT_EQ(refusal(r), "LAUNCH-FOLDER");
  r.folder = (folder.path() / "there" / "mine").string();
  EXPECT_EQ(refusal(r), "LAUNCH-FOLDER");
  r.folder = "two\nlines";
  EXPECT_EQ(refusal(r), "LAUNCH-TEXT");
  r = request("local", "true");
  r.experiment.set_value("train.method", "full");
  EXPECT_EQ(refusal(r), "RECIPE");
  r = request("cat >/dev/null; # {command}", "true");
  EXPECT_EQ(refusal(r), "LAUNCH-REACH");
  fs::create_directories(folder.path() / "only sh");
  fs::create_symlink("/bin/sh", folder.path() / "only sh" / "sh");
  r = request("env 'PATH=" + (folder.path() / "only sh").string() + "' /bin/sh -c {command}", "true");
  EXPECT_EQ(refusal(r), "LAUNCH-PYTHON");
  ::setenv("PATH", (folder.path() / "only sh").c_str(), 1);
  r = request("ssh:somewhere", "true");
  EXPECT_EQ(refusal(r), "PROCESS");
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_TRUE(store::Store(folder.path() / "runs").list().empty());
  EXPECT_EQ(read_file(folder.path() / "there" / "mine"), "x");
}

TEST_F(Launching, FetchDoesNotFollowSymbolicLinks) {
  const fs::path outside = folder.path() / "outside";
  for (const char* file : {"secret", "sub/secret"}) write_file_atomically(outside / file, "SECRET");
  LaunchRequest r =
      request("local",
              "mkdir -p out/logs/own; echo x > out/logs/own/x; echo y > y; ln -s ../../y out/logs/inside; "
              "ln -s '" +
                  outside.string() + "' out/logs/folder; ln -s '" + outside.string() +
                  "/secret' out/logs/file; ln -s '" + outside.string() + "' leak; mkfifo out/logs/pipe");
  r.fetch = {"out",    "out/logs", "leak", "leak/sub", "leak/secret", "out/logs/folder/secret", "out/logs/file|y",
             "missing"};
  const LaunchResult l = go(r);
  ASSERT_TRUE(l.finished);
  EXPECT_EQ(l.finished->state, RunState::done) << l.finished->error;
  const fs::path fetched = store::Store(folder.path() / "runs").run_folder(l.run) / "fetched";
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(fetched)) {
    EXPECT_FALSE(entry.is_symlink()) << entry.path();
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), fetched).string());
  }
  EXPECT_THAT(files, testing::UnorderedElementsAre("out/logs/own/x", "y"));
  EXPECT_THAT(logged(l.run, "symbolic links are not fetched"),
              testing::ElementsAre(testing::AllOf(HasSubstr("leak"), HasSubstr("out/logs/folder"),
                                                  HasSubstr("out/logs/file"), HasSubstr("out/logs/inside"))));
}

TEST_F(Launching, RejectsBadFetchPathsBeforeStart) {
  for (const char* path : {"../x", "/etc", "a/../../x", "out|../x", "a//b", "", "out|", "."}) {
    LaunchRequest r = request("local", "true");
    r.fetch = {"out", path};
    try {
      go(r);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.problem().id, "LAUNCH-PATH") << path;
      EXPECT_EQ(error.kind(), Error::Kind::bad_input);
      EXPECT_THAT(error.what(), HasSubstr("--fetch: the path is outside the job's folder"));
    }
  }
  EXPECT_FALSE(fs::exists(folder.path() / "runs"));
  EXPECT_THAT(left_beside(), testing::IsEmpty());
}

TEST_F(Launching, RejectsCredentialsInCommand) {
  LaunchRequest r = request("local", "wget https://user:hunter2@host/data");
  EXPECT_EQ(refusal(r), "LAUNCH-SECRET");
  r = request("box --proxy http://user:hunter2@proxy {command}", "true");
  EXPECT_EQ(refusal(r), "LAUNCH-SECRET");
  EXPECT_FALSE(fs::exists(folder.path() / "runs"));
}

TEST_F(Launching, UnreachableTargetSuggestsCommandWithPort) {
  const FakePrograms programs(folder.path() / "bin");
  programs.add("ssh", "echo 'Connection refused' >&2; exit 255");
  LaunchRequest r = request("ssh:me@box:2222", "true");
  const auto fix = [&]() -> std::string {
    try {
      go(r);
    } catch (const Error& error) {
      return error.problem().fix;
    }
    return "";
  };
  EXPECT_THAT(fix(), testing::EndsWith(": ssh -p 2222 me@box"));
  r.target.ssh_config = "/etc/ssh config";
  EXPECT_THAT(fix(), testing::EndsWith(": ssh -F '/etc/ssh config' -p 2222 me@box"));
  r = request("ssh:box", "true");
  EXPECT_THAT(fix(), testing::EndsWith(": ssh box"));
}

TEST_F(Launching, ForcedFolderKeepsFilesOfEarlierJob) {
  LaunchRequest r = request("local", "mkdir -p out/logs; ls out >> out/logs/seen; echo more >> out/logs/x");
  ASSERT_TRUE(go(r).finished);
  EXPECT_EQ(refusal(r), "LAUNCH-FOLDER");
  r.use = FolderUse::forced;
  const LaunchResult again = go(r);
  EXPECT_EQ(again.finished->state, RunState::done);
  EXPECT_EQ(read_file(folder.path() / "there/out/logs/x"), "more\nmore\n");
}

// The upload is complete, but its answer is lost.
TEST_F(Launching, DoesNotRepeatUploadWithLostAnswer) {
  write_file_atomically(folder.path() / "box.sh",
                        "case \"$1\" in *\"put\"*) if mkdir '" + (folder.path() / "cut").string() +
                            "' 2>/dev/null; then sh -c \"$1\" > '" + (folder.path() / "answer").string() +
                            "'; exit 255; fi;; esac\nexec sh -c \"$1\"\n");
  const LaunchRequest r = with_data("sh " + (folder.path() / "box.sh").string() + " {command}", command(0.001));
  const LaunchResult l = go(r);
  ASSERT_TRUE(l.finished);
  EXPECT_EQ(l.finished->state, RunState::done) << l.finished->error;
  EXPECT_THAT(read_file(folder.path() / "answer"), HasSubstr("\"end\""));  // of the one that nobody heard
  expect_whole_record(l.run);
  expect_whole_recipe(l.run);
  EXPECT_EQ(logged(l.run, "while the recipe was copied").size(), 1u);
}

// One side may detect a lost connection late, so an attempt may end after its successor.
TEST_F(Launching, LateAttemptChangesNothing) {
  const LaunchTarget local = parse_target("local", MW_RESOURCES "/launch");
  const auto file = [](const std::string& path, const std::string& text) {
    return Json{{"path", path}, {"size", text.size()}, {"mode", 0644}}.dump() + "\n" + text;
  };
  for (const std::string use : {"fresh", "force"}) {
    const auto put = [&](const std::function<std::string_view()>& input) {
      const RemoteCall what{{"put", (folder.path() / "there").string(), "0123456789abcdef" + use, "1000", use}, input};
      return call_remote(local, MW_RESOURCES, what, [](const Frame&) {}, {}, {}).outcome;
    };
    const std::string early = file("a/one", "early"), late = file("c/late", "late") + "{\"files\":2}\n",
                      whole = file("a/one", use) + file("b/two", use) + "{\"files\":2}\n";
    const auto successor = [&] {
      while (left_beside().size() < (use == "fresh" ? 1u : 2u))
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      bool sent = false;
      return put([&] { return std::exchange(sent, true) ? std::string_view() : std::string_view(whole); });
    };
    int piece = 0;
    const auto outliving = [&]() -> std::string_view {
      if (++piece == 2) {
        EXPECT_EQ(successor(), CallOutcome::answered) << use;
      }
      return piece == 1 ? early : piece == 2 ? late : std::string_view();
    };
    EXPECT_NE(test::error_id([&] { put(outliving); }), "") << use;
    EXPECT_EQ(read_file(folder.path() / "there/a/one"), use);
    EXPECT_EQ(read_file(folder.path() / "there/b/two"), use);
    EXPECT_FALSE(fs::exists(folder.path() / "there/c/late")) << use;
    EXPECT_EQ(read_file(folder.path() / "there/.meshwright/token"), "0123456789abcdef" + use);
    EXPECT_THAT(left_beside(), testing::ElementsAre("there")) << use;
  }
}

// After a detach or a full disk, the record shows no transfer in progress.
TEST_F(Launching, UnsupervisedRecordShowsNoProgress) {
  const auto view_of = [&](const store::RunId& run) {
    views::RunView view;
    const store::Store store(folder.path() / "runs");
    for (const auto& e : store.events(run)) view.feed(e.event);
    return view;
  };
  std::string phase;
  const EventSink detaching = [&](const Event& e) {
    const auto* p = std::get_if<event::Progress>(&e.body);
    if (p && p->phase == phase) detach.request_stop();
    if (std::holds_alternative<event::Metric>(e.body) && phase.empty()) detach.request_stop();
  };
  const std::string job =
      "mkdir -p out/adapter; head -c 3000000 /dev/zero > out/adapter/x; "
      "echo '{\"event\":\"metric\",\"name\":\"m\",\"step\":1,\"value\":1}'; while [ ! -e go ]; do sleep 0.01; done";
  const LaunchResult l = launch(request("local", job), plan::PlanContext::load(MW_RESOURCES "/hardware"), detaching,
                                {detach.get_token(), {}});
  ASSERT_FALSE(l.finished);
  EXPECT_FALSE(view_of(l.run).activity()) << view_of(l.run).activity()->phase;  // it was "copying"
  write_file_atomically(folder.path() / "there" / "go", "");
  phase = "fetching";
  detach = {};
  const LaunchResult again = reattach({.run = l.run, .runs_folder = folder.path() / "runs", .resources = MW_RESOURCES},
                                      detaching, {detach.get_token(), {}});
  ASSERT_FALSE(again.finished);
  EXPECT_FALSE(view_of(l.run).activity()) << view_of(l.run).activity()->phase;
  detach = {};
  const LaunchResult end = go_on(l.run);
  ASSERT_TRUE(end.finished);
  EXPECT_EQ(fs::file_size(store::Store(folder.path() / "runs").run_folder(l.run) / "fetched/out/adapter/x"), 3000000u);
}

// The process that watches the job is killed, as by a restart of the machine.
TEST_F(Launching, LostJobEndsRecord) {
  const LaunchRequest r = request("local", "echo $PPID > pid; exec sleep 5");
  std::jthread killer([&] {
    const fs::path pid = folder.path() / "there" / "pid";
    while (!fs::exists(pid) || fs::file_size(pid) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::kill(std::stoi(read_file(pid)), SIGKILL);
  });
  const LaunchResult l = go(r);
  ASSERT_TRUE(l.finished);
  EXPECT_EQ(l.finished->state, RunState::failed);
  EXPECT_THAT(l.finished->error, HasSubstr("the job was lost"));
}

}  // namespace
}  // namespace mw::launch
