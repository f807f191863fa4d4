// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/load/load.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mw::serve {
namespace {

// numpy 2.4.6: np.random.seed(7); [np.random.gamma(shape=shape, scale=1.0) for _ in range(6)]
struct Drawn {
  double shape, values[6];
};
constexpr Drawn kDrawn[] = {{0.25,
                             {3.3906805248556e-05, 0.03694186028636633, 0.06306211780311208, 0.005192569528079854,
                              0.21284694827809486, 0.021058696098210882}},
                            {1,
                             {0.07937690952144451, 1.5137586745587868, 0.5769818641565158, 1.2854185268208107,
                              3.816236211795087, 0.7732642768895222}},
                            {4,
                             {7.949849761389604, 2.844873891402551, 2.3539632013773537, 3.670623360020673,
                              5.980927443374507, 4.940921556547067}}};

TEST(ArrivalTimes, AreDrawnAsNumPyDraws) {
  for (const Drawn& drawn : kDrawn) {
    GammaIntervals intervals(7);
    for (const double expected : drawn.values)
      EXPECT_NEAR(intervals.next(drawn.shape), expected, 1e-13 * expected) << drawn.shape;
  }
}

// 30 requests at 4/s, seed 0, computed as get_request() of vllm/benchmarks/serve.py does:
// np.random.seed(0); t = np.cumsum([np.random.gamma(1, 1 / 4) for _ in range(30)]); t * (30 / 4) / t[-1]
TEST(ArrivalTimes, AreThoseOfVllmBench) {
  RandomArrivals arrivals(0, 1, 30);
  EXPECT_NEAR(arrivals.next() / 4, 0.165, 5e-4);
  EXPECT_NEAR(arrivals.next() / 4, 0.424, 5e-4);
  double last = 0;
  for (int i = 2; i < 30; ++i) last = arrivals.next() / 4;
  EXPECT_NEAR(last, 7.5, 1e-12);
}

TEST(ArrivalTimes, LargeSeedsDiffer) {
  EXPECT_NE(RandomArrivals(std::uint64_t{1} << 40, 1, 5).next(), RandomArrivals(0, 1, 5).next());
}

}  // namespace
}  // namespace mw::serve
