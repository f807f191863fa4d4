// SPDX-License-Identifier: Apache-2.0
#include "core/base/flat_map.h"

#include <gtest/gtest.h>

#include <map>

namespace mw {
namespace {

TEST(FlatMap, AgreesWithStdMapUnderRandomOperations) {
  for (const int bits : {4, 9, 64}) {  // few values insert and erase the same hashes often and collide in the table
    Rng rng{static_cast<std::uint64_t>(bits)};
    FlatMap<int> index;
    std::map<std::uint64_t, int> truth;
    for (int i = 0; i < 20'000; ++i) {
      const std::uint64_t hash = rng.next() >> (64 - bits);
      if (rng.below(2) == 0) {
        index.erase(hash);
        truth.erase(hash);
      } else {
        EXPECT_EQ(index.insert(hash, i), truth.emplace(hash, i).second);
      }
      ASSERT_EQ(index.size(), truth.size());
      const std::uint64_t other = rng.next() >> (64 - bits);
      const auto found = truth.find(other);
      const int* value = index.find(other);
      ASSERT_EQ(value ? *value : -1, found == truth.end() ? -1 : found->second);
    }
    for (const auto& [hash, block] : truth) ASSERT_EQ(*index.find(hash), block);
    index.clear();
    EXPECT_EQ(index.size(), 0u);
    EXPECT_FALSE(index.contains(truth.empty() ? 0 : truth.begin()->first));
  }
}

}  // namespace
}  // namespace mw
