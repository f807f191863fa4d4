// SPDX-License-Identifier: GPL-3.0-or-later
// Every architecture says through its cache what full forwards say.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/engine/generate/sampler.h"
#include "tests/engine/families.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine::test {
namespace {

class Greedy : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, Greedy, ::testing::ValuesIn(families()), family_name);

int best_next(Network& network, const std::vector<int>& ids) {
  const int n = static_cast<int>(ids.size());
  OwnedBatch b{
      1, n, ids, std::vector<int>(ids.size(), -1), std::vector<int>(ids.size()), std::vector<int>(ids.size(), 0)};
  std::iota(b.positions.begin(), b.positions.end(), 0);
  std::vector<float> logits(ids.size() * static_cast<size_t>(network.config().vocab));
  network.logits(b, logits);
  const auto last = logits.end() - network.config().vocab;
  return static_cast<int>(std::max_element(last, logits.end()) - last);
}

TEST_P(Greedy, DecodingThroughTheCacheEqualsArgmaxOfFullForwards) {  // far past the window of 5
  Device device(Bytes(0), 2);
  Network network(as_family(tiny_config(), GetParam()), device, model::WeightType::f32);
  fill(network, 8, 0.25f);
  network.add_lora(all_projections(), 5);
  randomise_adapters(network, 6);
  std::vector<int> ids{2, 9, 33, 41, 7, 7, 12};
  const std::vector<int> generated = Sampler(network).generate(ids, {.max_new_tokens = 30});
  ASSERT_EQ(generated.size(), 30u);
  for (const int id : generated) {
    EXPECT_EQ(id, best_next(network, ids)) << "after " << ids.size() << " tokens";
    ids.push_back(id);
  }
}

}  // namespace
}  // namespace mw::engine::test
