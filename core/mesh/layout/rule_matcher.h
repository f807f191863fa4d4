// SPDX-License-Identifier: Apache-2.0
// A user's sharding rules at work: which matches a tensor, and its spec as far as it is possible. One thread.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/pattern.h"
#include "core/mesh/layout/placement.h"

namespace mw::mesh {

class RuleMatcher {
 public:
  // A pattern that is not usable is a problem and matches nothing. All three outlive this.
  RuleMatcher(const ShardingRules& rules, const Mesh& mesh, std::vector<Problem>& problems);
  // The index of the first rule for these names; -1: none. Rules are for adapters where the pattern has "lora_".
  int find(const std::string& name, const std::string& path, model::Role role);
  // Its spec, `rank` long, less what is not possible; each kind of fault of a rule is told once.
  PartitionSpec spec(int rule, const std::string& name, size_t rank, int tunix_slot);
  void report_unused();

 private:
  bool matches(size_t i, const std::string& name, const std::string& path);
  void report(size_t i, const Error& error);
  void tell(size_t i, const char* id, const std::string& axis, Problem problem);
  std::string place(size_t i) const;
  std::string shown(size_t i) const;

  const ShardingRules& rules_;
  const Mesh& mesh_;
  std::vector<Problem>& problems_;
  std::vector<std::optional<Pattern>> patterns_;
  std::vector<bool> used_;
  std::set<std::tuple<size_t, std::string, std::string>> told_;  // rule, id, axis
};

}  // namespace mw::mesh
