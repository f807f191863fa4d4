// SPDX-License-Identifier: Apache-2.0
// Matches tensors against the user's sharding rules and validates the specs of the rules. Not thread-safe.
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
  // Reports an invalid pattern in `problems`; its rule matches nothing. The arguments must outlive this object.
  RuleMatcher(const ShardingRules& rules, const Mesh& mesh, std::vector<Problem>& problems);
  // The index of the first rule that matches the name or the path, -1 if none does. Rules with "lora_" in their pattern
  // apply to adapters only, all others to weights only.
  int find(const std::string& name, const std::string& path, model::Role role);
  // The spec of the rule with `rank` entries, without impossible ones. Reports each kind of fault once per rule.
  PartitionSpec spec(int rule, const std::string& name, size_t rank, int tunix_slot);
  void report_unused();

 private:
  bool matches(size_t i, const std::string& name, const std::string& path);
  void report(size_t i, const Error& error);
  void report_once(size_t i, const char* id, const std::string& axis, Problem problem);
  std::string place(size_t i) const;
  std::string shown(size_t i) const;

  const ShardingRules& rules_;
  const Mesh& mesh_;
  std::vector<Problem>& problems_;
  std::vector<std::optional<Pattern>> patterns_;
  std::vector<bool> used_;
  std::set<std::tuple<size_t, std::string, std::string>> reported_;  // rule, id, axis
};

}  // namespace mw::mesh
