// SPDX-License-Identifier: Apache-2.0
// The collectives of a server's step for any count of tokens. Listing them is slow; their bytes grow in proportion, so
// that two lists tell all. Any thread.
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
  // As `list` gives them; listed anew where they are no straight lines (shards that are padded, steps that differ).
  const std::vector<mesh::Collective>& of(std::int64_t count);

 private:
  List list_;
  std::vector<mesh::Collective> few_, many_;
  bool straight_ = false;
  std::vector<mesh::Collective> now_;
};

}  // namespace mw::plan
