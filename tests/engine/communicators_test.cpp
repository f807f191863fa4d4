// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/distributed/communicators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <numeric>
#include <thread>

#include "core/base/error.h"

namespace mw::engine {
namespace {

using mesh::CollectiveKind;
using testing::Each;
using testing::SizeIs;

mesh::Mesh two(int fsdp, int tp) {
  return {{{"fsdp", fsdp}, {"tp", tp}}};
}
constexpr int kFsdp = 0, kTp = 1;
const CallTag kWhy{mesh::Phase::forward, mesh::Cause::partial_sums, 3, "layers.3.mlp"};

// One result per device.
template <class T, class F>
std::vector<T> on_each(CommunicatorGroup& communicators, F work) {
  std::vector<T> out(static_cast<size_t>(communicators.devices()));
  communicators.each([&](Communicator& port) { out[static_cast<size_t>(port.device())] = work(port); });
  return out;
}

float value(int device, size_t i) {
  return std::sin(static_cast<float>(device * 1000) + static_cast<float>(i)) * 100;
}
std::vector<float> values(int device, size_t count) {
  std::vector<float> v(count);
  for (size_t i = 0; i < count; ++i) v[i] = value(device, i);
  return v;
}

long threads_of_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("Threads:", 0) == 0) return std::stol(line.substr(8));
  return -1;
}

TEST(CommunicatorGroup, DevicesKnowTheirPlace) {
  CommunicatorGroup communicators(two(2, 3));
  EXPECT_EQ(communicators.devices(), 6);
  EXPECT_EQ(communicators.port(4).rank(kFsdp), 1);
  EXPECT_EQ(communicators.port(4).rank(kTp), 1);
  EXPECT_EQ(communicators.port(4).size(kTp), 3);
  EXPECT_EQ(communicators.port(4).peer(kFsdp, 0), 1);
  EXPECT_EQ(communicators.port(4).peer(kTp, 2), 5);
}

class FabricSizes : public testing::TestWithParam<size_t> {};
// Below, at and above where arrays are summed in parts; not multiples of anything.
INSTANTIATE_TEST_SUITE_P(Lengths, FabricSizes, testing::Values(0, 1, 7, 511, 512, 513, 1000, 5003, 70001));

TEST_P(FabricSizes, AllReduceSumsInTheOrderOfRanks) {
  const size_t n = GetParam();
  CommunicatorGroup communicators(two(2, 4));
  const auto out = on_each<std::vector<float>>(communicators, [&](Communicator& port) {
    std::vector<float> v = values(port.device(), n);
    port.all_reduce(kTp, kWhy, v);
    return v;
  });
  for (int d = 0; d < 8; ++d)
    for (size_t i = 0; i < n; ++i) {
      const int first = d / 4 * 4;
      float sum = value(first, i);
      for (int r = 1; r < 4; ++r) sum += value(first + r, i);
      ASSERT_EQ(out[static_cast<size_t>(d)][i], sum) << "device " << d << ", element " << i;
    }
}

TEST_P(FabricSizes, MaximumOfTheGroup) {
  const size_t n = GetParam();
  CommunicatorGroup communicators(two(3, 1));
  const auto out = on_each<std::vector<float>>(communicators, [&](Communicator& port) {
    std::vector<float> v = values(port.device(), n);
    port.all_reduce(kFsdp, kWhy, v, Reduce::max);
    return v;
  });
  for (const auto& v : out)
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(v[i], std::max({value(0, i), value(1, i), value(2, i)}));
}

TEST_P(FabricSizes, AllGatherPutsThePartsInTheOrderOfRanks) {
  const size_t n = GetParam();
  CommunicatorGroup communicators(two(4, 2));
  communicators.each([&](Communicator& port) {
    std::vector<float> all(4 * n);
    port.all_gather(kFsdp, kWhy, values(port.device(), n), all);
    for (int r = 0; r < 4; ++r)
      for (size_t i = 0; i < n; ++i)
        ASSERT_EQ(all[static_cast<size_t>(r) * n + i], value(port.peer(kFsdp, r), i)) << "rank " << r;
    // In place: the own part within the whole.
    std::vector<float> again(4 * n);
    const std::span<float> part = std::span(again).subspan(static_cast<size_t>(port.rank(kFsdp)) * n, n);
    std::copy_n(all.begin() + (part.data() - again.data()), n, part.begin());
    port.all_gather(kFsdp, kWhy, part, again);
    EXPECT_EQ(again, all);
  });
}

TEST(CommunicatorGroup, CountsCallsAndBytesAsThePlanDoes) {
  CommunicatorGroup communicators(two(1, 4));
  communicators.each([&](Communicator& port) {
    std::vector<float> v(1000), all(4000);
    for (int i = 0; i < 3; ++i) {
      port.all_reduce(kTp, kWhy, v);
      port.all_gather(kTp, kWhy, v, all);
    }
    port.all_reduce(kFsdp, kWhy, v);  // nobody to talk to
  });
  for (int d = 0; d < 4; ++d) {
    const auto& t = communicators.port(d).traffic();
    ASSERT_THAT(t, SizeIs(2));
    EXPECT_EQ(t[0].what.kind, CollectiveKind::all_reduce);
    EXPECT_EQ(t[0].what.calls, 3);
    EXPECT_EQ(t[0].what.moved.value, 2 * 3000);
    EXPECT_EQ(t[0].what.axis, "tp");
    EXPECT_EQ(t[0].what.layer, 3);
    EXPECT_EQ(t[0].what.tensor, "layers.3.mlp");
    EXPECT_EQ(t[1].what.full.value, 16000);
    EXPECT_EQ(t[1].what.moved.value, 12000);
    EXPECT_GE(t[1].seconds, t[1].waited);
  }
  communicators.port(0).clear_traffic();
  EXPECT_THAT(communicators.port(0).traffic(), SizeIs(0));
}

TEST(CommunicatorGroup, OneFailureLetsTheOthersGoAndIsThrown) {
  CommunicatorGroup communicators(two(2, 4));
  for (int round = 0; round < 20; ++round) {
    const int bad = round % 8;
    try {
      communicators.each([&](Communicator& port) {
        std::vector<float> v(2000);
        port.all_reduce(kTp, kWhy, v);
        if (port.device() == bad) throw Error({.id = "MEMORY", .message = "no room"});
        for (int i = 0; i < 3; ++i) port.all_reduce(kTp, kWhy, v), port.all_reduce(kFsdp, kWhy, v), port.barrier();
      });
      FAIL() << "nothing thrown";
    } catch (const Error& e) {
      EXPECT_EQ(e.problem().id, "MEMORY");
    }
    // And it works again.
    const auto out = on_each<float>(communicators, [&](Communicator& port) {
      std::vector<float> v{1};
      port.all_reduce(kTp, kWhy, v), port.all_reduce(kFsdp, kWhy, v);
      return v[0];
    });
    EXPECT_THAT(out, Each(8.0f));
  }
}

TEST(CommunicatorGroup, DifferentCallsAreAnError) {
  CommunicatorGroup communicators(two(1, 2));
  EXPECT_THROW(communicators.each([&](Communicator& port) {
    std::vector<float> v(port.device() == 0 ? 5 : 6);
    port.all_reduce(kTp, kWhy, v);
  }),
               Error);
}

TEST(CommunicatorGroup, StopsWhileDevicesWait) {
  CommunicatorGroup communicators(two(1, 4));
  for (int round = 0; round < 20; ++round) {
    std::stop_source stop;
    std::atomic<int> steps{0};
    std::jthread stopper([&] {
      while (steps < 50) std::this_thread::yield();
      stop.request_stop();
    });
    try {
      communicators.each(
          [&](Communicator& port) {
            for (std::vector<float> v(600);;) port.all_reduce(kTp, kWhy, v), ++steps;
          },
          stop.get_token());
      FAIL() << "it does not end by itself";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), Error::Kind::cancelled);
    }
  }
}

TEST(CommunicatorGroup, ThousandStartsAndStopsLeaveNoThread) {
  const long before = threads_of_process();
  for (int i = 0; i < 1000; ++i) {
    CommunicatorGroup communicators(two(2, 2));
    std::stop_source stop;
    if (i % 3 == 0) stop.request_stop();
    try {
      communicators.each(
          [&](Communicator& port) {
            std::vector<float> v(10);
            if (i % 5 == 0 && port.device() == 1) throw Error({.id = "X", .message = "x"});
            port.all_reduce(kTp, kWhy, v), port.barrier();
          },
          stop.get_token());
    } catch (const Error&) {
    }
  }
  EXPECT_LE(threads_of_process(),
            before);  // joined threads of an earlier test may have been counted, as under emulation
}

TEST(CommunicatorGroup, RefusesMoreThanSixtyFourDevices) {
  EXPECT_THROW(CommunicatorGroup(two(16, 8)), Error);
  EXPECT_EQ(CommunicatorGroup(two(8, 8)).devices(), 64);
}

}  // namespace
}  // namespace mw::engine
