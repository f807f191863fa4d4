// SPDX-License-Identifier: Apache-2.0
// The collectives of a server's step for any number of tokens. Listing them is slow, but their bytes are linear in the
// number of tokens, so that two lists are enough. Not thread-safe.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "core/mesh/collectives/collectives.h"

namespace mw::plan {

class StepCollectives {
 public:
  using List = std::function<std::vector<mesh::Collective>(std::int64_t count)>;
  explicit StepCollectives(List list);
  // Equal to `list(count)`; calls it again if the bytes are not linear (padded shards, different steps).
  const std::vector<mesh::Collective>& of(std::int64_t count);

 private:
  List list_;
  std::vector<mesh::Collective> small_, large_;
  bool is_linear_ = false;
  std::vector<mesh::Collective> current_;
};

}  // namespace mw::plan
