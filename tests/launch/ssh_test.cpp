// SPDX-License-Identifier: GPL-3.0-or-later
// Launches over a real sshd (Debian) on a loopback port, with its own keys in a temporary folder. The tests cut the
// connection.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "core/base/process.h"
#include "tests/launch/launch_fixture.h"

namespace mw::launch {
namespace {
namespace fs = std::filesystem;
using testing::HasSubstr;

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  const bool good = ::bind(fd, reinterpret_cast<sockaddr*>(&at), size) == 0 &&
                    ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) == 0;
  ::close(fd);
  return good ? ntohs(at.sin_port) : 0;
}

// Runs the command and returns its output.
std::string run(const std::vector<std::string>& command) {
  Process process(command, Process::Input::none);
  std::string all;
  const auto add = [&](std::string_view bytes) { all += bytes; };
  while (process.transfer({.out = add, .err = add}, std::chrono::milliseconds(100))) {
  }
  EXPECT_EQ(process.wait(), 0) << command.front() << ": " << all;
  return all;
}

// Child processes of `pid`.
std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> out;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream stat(entry.path() / "stat");
    std::string text;
    if (!std::getline(stat, text)) continue;
    const size_t name_end = text.rfind(')');  // pid (name) state ppid
    if (name_end == std::string::npos || name_end + 4 >= text.size()) continue;
    if (std::strtol(text.c_str() + name_end + 4, nullptr, 10) == pid) out.push_back(std::atoi(text.c_str()));
  }
  return out;
}

class Sshd {
 public:
  explicit Sshd(const fs::path& folder) : folder_(folder), port_(free_port()) {
    fs::create_directories(folder);
    if (::geteuid() == 0) fs::create_directories("/run/sshd");  // as Debian's service does; sshd insists on it
    for (const char* key : {"host", "user"})
      run({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", (folder / key).string()});
    write("authorized_keys", read_file(folder / "user.pub"));
    write("known_hosts", "[127.0.0.1]:" + std::to_string(port_) + " " + read_file(folder / "host.pub"));
    write("sshd_config",
          "Port " + std::to_string(port_) + "\nListenAddress 127.0.0.1\nHostKey " + at("host") +
              "\nAuthorizedKeysFile " + at("authorized_keys") +
              "\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\nPermitRootLogin yes\n"
              "MaxStartups 100\n");
    write("ssh_config", "Host box\n  HostName 127.0.0.1\n  Port " + std::to_string(port_) + "\n  IdentityFile " +
                            at("user") + "\n  IdentitiesOnly yes\n  UserKnownHostsFile " + at("known_hosts") +
                            "\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n");
    start();
  }
  ~Sshd() { stop(); }
  Sshd(const Sshd&) = delete;
  Sshd& operator=(const Sshd&) = delete;

  fs::path ssh_config() const { return folder_ / "ssh_config"; }
  void start() {
    pid_ = ::fork();
    if (pid_ == 0) {
      const std::string config = at("sshd_config"), log = at("log");
      ::execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-f", config.c_str(), "-E", log.c_str(), nullptr);
      ::_exit(127);
    }
    for (int i = 0; i < 500 && !listens(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_TRUE(listens()) << "no sshd: "
                           << (fs::exists(folder_ / "log") ? read_file(folder_ / "log")
                                                           : "not started; apt install openssh-server");
  }
  void stop() {
    if (pid_ <= 0) return;
    cut();
    ::kill(pid_, SIGKILL);
    test::wait_for(std::exchange(pid_, -1));
  }
  // Kills the processes that serve connections and returns their number.
  int cut() const {
    int killed = 0;
    for (const pid_t session : children_of(pid_)) {
      for (const pid_t below : children_of(session))
        if (std::ifstream comm("/proc/" + std::to_string(below) + "/comm"); comm) {
          std::string name;
          comm >> name;
          if (name == "sshd") ::kill(below, SIGKILL);
        }
      killed += ::kill(session, SIGKILL) == 0;
    }
    return killed;
  }

 private:
  std::string at(const char* name) const { return (folder_ / name).string(); }
  void write(const char* name, const std::string& text) const {
    write_file_atomically(folder_ / name, text);
    fs::permissions(folder_ / name, fs::perms::owner_read | fs::perms::owner_write);
  }
  bool listens() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port_));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool good = ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
    ::close(fd);
    return good;
  }
  fs::path folder_;
  int port_;
  pid_t pid_ = -1;
};

struct OverSsh : Launching {
  Sshd sshd{folder.path() / "sshd"};
  LaunchRequest to(const std::string& on, const std::string& shell) const { return over_ssh(request(on, shell)); }
  LaunchRequest over_ssh(LaunchRequest r) const {
    r.target.ssh_config = sshd.ssh_config();
    return r;
  }
};

// The last piece and the final line are not sent yet when the copy is reported as complete
// locally.
bool copied_all_but_the_end(const Event& e) {
  const auto* p = std::get_if<event::Progress>(&e.body);
  return p && p->phase == "copying" && p->done == p->total;
}

TEST_F(OverSsh, CutConnectionsLoseAndRepeatNothing) {
  // The job waits after each cut until there is a new connection, so that each cut finds one.
  hold(10), hold(20);
  int cuts = 0;
  const EventSink cutting = [&](const Event& e) {
    heard.push_back(e);
    if (const auto* m = std::get_if<event::Metric>(&e.body); m && (m->step == 5 || m->step == 14)) {
      EXPECT_GE(sshd.cut(), 1) << m->step;
      ++cuts;
    }
    if (const auto* l = std::get_if<event::Log>(&e.body); l && l->text.find("connected again") != std::string::npos)
      let_go(cuts == 1 ? 10 : 20);
  };
  const LaunchResult l =
      launch(to("ssh:box", command(0.02)), plan::PlanContext::load(MW_RESOURCES "/hardware"), cutting, {});
  ASSERT_TRUE(l.finished);
  expect_whole_record(l.run);
  EXPECT_EQ(logged(l.run, "connection lost").size(), 2u);
  EXPECT_EQ(logged(l.run, "connected again").size(), 2u);
}

TEST_F(OverSsh, ResumesCutUploadAndStartsOnce) {
  int cuts = 0;
  const EventSink cutting = [&](const Event& e) {
    if (!copied_all_but_the_end(e) || cuts == 2) return;
    ++cuts;
    EXPECT_GE(sshd.cut(), 1) << cuts;
    EXPECT_FALSE(fs::exists(folder.path() / "there"));
  };
  const LaunchResult l = launch(over_ssh(with_data("ssh:box", command(0.002))),
                                plan::PlanContext::load(MW_RESOURCES "/hardware"), cutting, {});
  EXPECT_EQ(cuts, 2);
  ASSERT_TRUE(l.finished);
  EXPECT_EQ(l.finished->state, RunState::done) << l.finished->error;
  expect_whole_record(l.run);
  expect_whole_recipe(l.run);
  const auto lost = logged(l.run, "connection lost");
  ASSERT_FALSE(lost.empty());
  EXPECT_THAT(lost[0], HasSubstr("while the recipe was copied"));
  EXPECT_THAT(lost[0], HasSubstr("trying again for up to 30:00"));
  EXPECT_FALSE(logged(l.run, "connected again").empty());
  EXPECT_EQ(logged(l.run, "copied ").size(), 1u);
}

TEST_F(OverSsh, GivesUpUploadWithoutStarting) {
  const EventSink stopping = [this](const Event& e) {
    if (copied_all_but_the_end(e)) sshd.stop();
  };
  LaunchRequest r = over_ssh(with_data("ssh:box", "touch " + (folder.path() / "started").string()));
  r.timing.give_up = std::chrono::milliseconds(300);
  const LaunchResult l = launch(r, plan::PlanContext::load(MW_RESOURCES "/hardware"), stopping, {});
  ASSERT_TRUE(l.finished);
  EXPECT_EQ(l.finished->state, RunState::failed);
  EXPECT_THAT(l.finished->error, HasSubstr("the recipe could not be copied"));
  EXPECT_THAT(l.finished->error, HasSubstr("no connection for 300 ms"));
  const store::Store store(folder.path() / "runs");
  EXPECT_FALSE(can_reattach(store, *store.find(l.run)));
  while (!left_beside().empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it cleans up after itself
  EXPECT_FALSE(fs::exists(folder.path() / "started"));
}

// sshd is stopped for a while: the launch retries with increasing waits, and finally gives up.
TEST_F(OverSsh, RetriesStoppedServerAndGivesUp) {
  const EventSink stopping = [this](const Event& e) {
    const auto* m = std::get_if<event::Metric>(&e.body);
    if (m && m->step == 5) sshd.stop();
  };
  hold(10);
  LaunchRequest r = to("ssh:box", command(0.01));
  r.timing.give_up = std::chrono::milliseconds(300);
  std::string text;
  EXPECT_EQ(test::error_id([&] { launch(r, plan::PlanContext::load(MW_RESOURCES "/hardware"), stopping, {}); }, &text),
            "LAUNCH-LOST");
  EXPECT_THAT(text, HasSubstr("refused"));
  const store::RunId run = store::Store(folder.path() / "runs").list().at(0).id;
  let_go(10);
  sshd.start();
  ASSERT_TRUE(go_on(run).finished);
  expect_whole_record(run);
}

TEST_F(OverSsh, UnreachableHostCreatesNoRun) {
  LaunchRequest r = to("ssh:no-such-host.invalid", "true");
  std::string text;
  EXPECT_EQ(test::error_id([&] { go(r); }, &text), "LAUNCH-REACH");
  EXPECT_THAT(text, HasSubstr("no-such-host.invalid"));
  fs::remove(folder.path() / "sshd" / "user");  // no key: nobody is asked for a password
  run({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", (folder.path() / "sshd" / "user2").string()});
  fs::rename(folder.path() / "sshd" / "user2", folder.path() / "sshd" / "user");
  fs::remove(folder.path() / "sshd" / "user.pub");
  EXPECT_EQ(test::error_id([&] { go(to("ssh:box", "true")); }, &text), "LAUNCH-REACH");
  EXPECT_THAT(text, HasSubstr("Permission denied"));
  EXPECT_TRUE(store::Store(folder.path() / "runs").list().empty());
}

}  // namespace
}  // namespace mw::launch
