// SPDX-License-Identifier: Apache-2.0
// Collects dimensions that their axes do not divide and reports one problem for all tensors with the same cause. Not
// thread-safe.
#pragma once
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/mesh/layout/placement.h"

namespace mw::mesh {

class IndivisibleDimensions {
 public:
  void add(const PlacedTensor& tensor, size_t dimension);
  // TP-1, FSDP-1 or SPEC-DIVIDES problems, ordered by axis.
  std::vector<Problem> problems(const Placement& placement, const Mesh& mesh) const;

 private:
  struct Where {
    std::string first;  // tensor
    std::set<std::string> kinds;
    std::set<int> layers;
  };
  using Cause = std::tuple<std::vector<std::string>, model::Axis, std::int64_t>;  // axes, dimension, its size
  static Problem problem_of(const Cause& cause, const Where& where, const Placement& placement, const Mesh& mesh);
  std::map<Cause, Where> found_;
};

}  // namespace mw::mesh
