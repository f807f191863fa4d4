// SPDX-License-Identifier: GPL-3.0-or-later
// Unit tests of targets, command lines, frames and file transfer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/launch/file_transfer.h"
#include "core/launch/job_supervisor.h"
#include "core/launch/target.h"
#include "tests/base/file_faults.h"
#include "tests/store/store_fixture.h"

namespace mw::launch {
namespace {
namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

LaunchTarget parse(const std::string& text) {
  return parse_target(text, MW_RESOURCES "/launch");
}

TEST(LaunchTarget, AcceptsOnlyHostNames) {
  EXPECT_EQ(parse("local").where, Where::local);
  const LaunchTarget t = parse("ssh:me@box.example:2222");
  EXPECT_EQ(t.host, "me@box.example");
  EXPECT_EQ(t.port, "2222");
  EXPECT_THAT(command_line(t, "true"), Contains("BatchMode=yes"));
  const auto words = command_line(t, "echo 'a'");
  EXPECT_THAT(std::vector(words.end() - 3, words.end()),
              ElementsAre("--", "me@box.example", "exec sh -c 'echo '\\''a'\\'''"));
  for (const char* bad : {"ssh:", "ssh:-oProxyCommand=x", "ssh:a b", "ssh:me@-x", "ssh:@x", "ssh:x:0", "ssh:x:99999",
                          "ssh:x:", "ssh:$(id)", "ssh:a;b", "ssh:`a`", "", "nowhere", "kubectl",
                          "kubectl:pod=", "kubectl:pod=-x", "kubectl:pod=a,shoe=b", "kubectl:=a", "gcloud-tpu:name=a"})
    EXPECT_EQ(test::error_id([&] { parse(bad); }), "LAUNCH-TARGET") << bad;
  std::string text;
  test::error_id([&] { parse("ssh:x:99999"); }, &text);
  EXPECT_THAT(text, HasSubstr("invalid port"));
}

TEST(LaunchTarget, QuotesFieldsOfTemplates) {
  const LaunchTarget k = parse("kubectl:pod=it's; rm -rf /");
  EXPECT_EQ(command_line(k, "date").back(),
            "kubectl --namespace='default' exec -i 'it'\\''s; rm -rf /' -- sh -c "
            "'exec sh -c '\\''date'\\'''");
  const LaunchTarget g = parse("gcloud-tpu:name=mine,zone=us-east5-a");
  EXPECT_THAT(g.command, HasSubstr("tpu-vm ssh 'mine' --zone='us-east5-a' --worker='0'"));
  const LaunchTarget own = parse("docker exec -i box sh -c {command} | cat");
  EXPECT_EQ(command_line(own, "x").back(), "docker exec -i box sh -c 'exec sh -c '\\''x'\\''' | cat");
  EXPECT_GE(load_templates(MW_RESOURCES "/launch").size(), 2u);
}

TEST(LaunchTarget, StartsRecipesOnSeveralHosts) {
  const test::Scratch folder;
  write_file_atomically(folder.path() / "it's", "node0\nnode1\n");
  LaunchTarget t = parse("hosts:" + (folder.path() / "it's").string());
  EXPECT_EQ(t.where, Where::local);
  EXPECT_EQ(start_command(t), "exec python3 on_hosts.py " + shell_quoted((folder.path() / "it's").string()));
  t.ssh_config = "/etc/ssh config";
  EXPECT_THAT(start_command(t), testing::EndsWith(" --ssh-config '/etc/ssh config'"));
  EXPECT_EQ(start_command(parse("slurm")), "exec ./slurm.sh");
  const LaunchTarget login = parse("slurm:me@login:22");
  EXPECT_EQ(login.host, "me@login");
  EXPECT_EQ(start_command(login), "exec ./slurm.sh");
  EXPECT_EQ(start_command(parse("skypilot")), "exec ./sky.sh");
  EXPECT_EQ(parse("skypilot:mine").where, Where::local);
  EXPECT_EQ(start_command(parse("skypilot:mine")), "exec ./sky.sh --cluster mine");
  EXPECT_EQ(start_command(parse("kubernetes")), "exec ./jobset.sh");
  EXPECT_EQ(parse("kubernetes:team-a").where, Where::local);
  EXPECT_EQ(start_command(parse("kubernetes:team-a")), "exec ./jobset.sh --namespace team-a");
  EXPECT_EQ(start_command(parse("ssh:box")), "./launch.sh");
  const LaunchTarget slice = parse("gcloud-tpu:name=a b,zone=z,workers=4");
  EXPECT_EQ(slice.where, Where::local);
  EXPECT_EQ(start_command(slice),
            "exec python3 on_hosts.py --workers 4 --reach 'gcloud compute tpus tpu-vm ssh '\\''a b'\\'' "
            "--zone='\\''z'\\'' --worker={worker} --quiet --command={command}'");
  for (const char* bad :
       {"hosts:", "hosts:/nowhere", "slurm:", "slurm:-x", "skypilot:", "skypilot:-x", "skypilot:a b",
        "kubernetes:", "kubernetes:-x", "kubernetes:A", "kubernetes:a;b", "gcloud-tpu:name=a,zone=z,workers=0",
        "gcloud-tpu:name=a,zone=z,workers=many", "kubectl:pod=a,workers=2"})
    EXPECT_EQ(test::error_id([&] { parse(bad); }), "LAUNCH-TARGET") << bad;
}

struct Frames : testing::Test {
  FrameReader reader;
  std::vector<std::string> seen;
  void feed(std::string_view bytes, size_t piece) {
    for (size_t at = 0; at < bytes.size(); at += piece)
      reader.feed(bytes.substr(at, piece),
                  [&](const Frame& f) { seen.push_back(f.kind + ":" + std::string(f.bytes)); });
  }
};

TEST_F(Frames, ParseDataInAnyPieces) {
  for (const size_t piece : {1u, 3u, 1000u}) {
    reader = {};
    seen.clear();
    feed("Welcome to the machine\n@m\n\n@mw {\"kind\":\"data\",\"size\":7}\na\n@mw b@mw {\"kind\":\"end\"}\n", piece);
    EXPECT_THAT(seen, ElementsAre("data:a\n@mw b", "end:"));
  }
}

TEST_F(Frames, RejectOtherData) {
  for (const char* bad : {"@mw {}\n", "@mw nonsense\n", "@mw {\"kind\":\"data\",\"size\":-1}\n",
                          "@mw {\"kind\":\"data\",\"size\":99999999}\n", "@mw {\"kind\":\"x\"}\nbetween\n"}) {
    reader = {};
    EXPECT_EQ(test::error_id([&] { feed(bad, 64); }), "LAUNCH-STREAM") << bad;
  }
}

TEST(FileTransfer, RejectsPathsOutsideFolder) {
  const test::Scratch folder;
  const auto take = [&](const std::string& path) {
    DownloadReceiver in(folder.path() / "in", [](auto, auto) {});
    const Json head{{"kind", "file"}, {"path", path}, {"bytes", 1}};
    in.take({"file", head, {}});
    in.take({"data", Json::object(), "x"});
    in.end({{"files", 1}});
  };
  for (const char* bad : {"../x", "/etc/x", "a/../../x", "a//b", "", ".", "a/", "a/./b"})
    EXPECT_EQ(test::error_id([&] { take(bad); }), "LAUNCH-PATH") << bad;
  take("a/b");
  EXPECT_EQ(read_file(folder.path() / "in/a/b"), "x");
  EXPECT_NE(test::error_id([&] { take("a/b"); }), "") << "never twice the same";
  EXPECT_EQ(read_file(folder.path() / "in/a/b"), "x");
  DownloadReceiver missing(folder.path() / "in2", [](auto, auto) {});
  EXPECT_EQ(test::error_id([&] { missing.end({{"files", 2}}); }), "LAUNCH-STREAM");
}

TEST(FileTransfer, RejectsWrongSizes) {
  const test::Scratch folder;
  const auto take = [&](long long announced, const std::string& bytes) {
    DownloadReceiver in(folder.path() / std::to_string(announced), [](auto, auto) {});
    in.take({"file", Json{{"path", "x"}, {"bytes", announced}}, {}});
    in.take({"data", Json::object(), bytes});
    in.end({{"files", 1}});
  };
  EXPECT_EQ(test::error_id([&] { take(1, "xy"); }), "LAUNCH-STREAM");
  EXPECT_EQ(test::error_id([&] { take(3, "xy"); }), "LAUNCH-STREAM");
  EXPECT_EQ(test::error_id([&] { take(-1, "xy"); }), "LAUNCH-STREAM");
  EXPECT_EQ(test::error_id([&] { take(1ll << 60, "xy"); }), "DISK-FULL");
  take(2, "xy");
  EXPECT_EQ(read_file(folder.path() / "2/x"), "xy");
}

TEST(FileTransfer, FetchedFolderIsWholeOrMissing) {
  const auto fetched = [](const fs::path& f) { return f / "fetched" / "a" / "b"; };
  test::try_every_fault({.prepare = [](const fs::path&) {},
                         .write =
                             [](const fs::path& f) {
                               StagedFolder staged(f / "fetched");
                               DownloadReceiver in(staged.path(), [](auto, auto) {});
                               in.take({"file", Json{{"path", "a/b"}, {"bytes", 5}}, {}});
                               in.take({"data", Json::object(), "whole"});
                               in.end({{"files", 1}});
                               staged.commit();
                             },
                         .check_written = [&](const fs::path& f) { EXPECT_EQ(read_file(fetched(f)), "whole"); },
                         .check_unwritten =
                             [&](const fs::path& f) {
                               if (path_exists(f / "fetched")) {
                                 EXPECT_EQ(read_file(fetched(f)), "whole");
                               }
                             }});
}

// Each line is recorded once, regardless of lost connections and restarts.
TEST(JobStream, ContinuesAfterLastWholeLine) {
  const std::string out =
      "{\"event\":\"metric\",\"name\":\"m\",\"step\":1,\"value\":1}\r\n\nplain\n"
      "{\"event\":\"finished\",\"state\":\"done\"}\nafter\nlast";
  const test::Scratch folder;
  store::Store store(folder.path());
  for (size_t cut = 0; cut <= out.size(); ++cut) {
    const auto id = store.create(experiment::Experiment(), "x");
    const EventSink sink = [](const Event&) {};
    const importing::OnLine on_line = [](const std::string&) {};
    const auto read = [&](JobStream& stream, size_t to) {
      stream.connect();
      const Json head{{"stream", "out"}, {"at", stream.out()}, {"seconds", 1.0}};
      stream.take({"data", head, std::string_view(out).substr(stream.out(), to - stream.out())});
    };
    {
      importing::ExternalRun run(store, id, sink, on_line);
      JobStream stream(run, store.cursor(id));
      read(stream, cut / 2);
      read(stream, cut);
    }
    importing::ExternalRun run(store, id, sink, on_line);
    JobStream stream(run, store.cursor(id));
    read(stream, out.size());
    stream.end();
    EXPECT_TRUE(run.finished()) << cut;
    std::vector<std::string> texts;
    long metrics = 0;
    for (const auto& stored : store.events(id)) {
      if (const auto* l = std::get_if<event::Log>(&stored.event.body)) texts.push_back(l->text);
      metrics += std::holds_alternative<event::Metric>(stored.event.body);
    }
    EXPECT_THAT(texts, ElementsAre("plain", "after", "last")) << cut;
    EXPECT_EQ(metrics, 1) << cut;
    const Json gap{{"stream", "out"}, {"at", 3}, {"seconds", 1.0}};
    EXPECT_EQ(test::error_id([&] { stream.take({"data", gap, "x"}); }), "LAUNCH-STREAM");
  }
}

}  // namespace
}  // namespace mw::launch
