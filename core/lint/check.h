// SPDX-License-Identifier: Apache-2.0
// The checker: sharding and recipe mistakes, most of them known problems of Tunix, as a table of rules over plain
// input. Reads no files. A rule whose input is missing is reported as unchecked, never as passed. Any thread.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/units.h"
#include "core/mesh/layout/layout.h"
#include "core/mesh/layout/placement.h"
#include "core/mesh/layout/size_constraints.h"
#include "core/model/types.h"
#include "core/options/adapters.h"
#include "core/options/data.h"
#include "core/options/recipe.h"
#include "core/options/serving.h"

namespace mw::lint {

enum class Purpose { train, serve };

struct LoraInput {
  options::Lora options{};
  std::vector<model::Role> targets{};                         // the roles of options.targets
  std::optional<std::vector<std::string>> adapter_tensors{};  // tensor names of the PEFT adapter to start from
};

struct CheckpointInput {                 // the files to load, compared with the inventory
  std::string prefix;                    // before "layers.": "model.language_model."
  std::vector<std::string> unmatched{};  // language-model tensors that the inventory does not have
  std::vector<std::string> missing{};    // inventory tensors that the files do not have
  std::int64_t embedding_rows = 0;
  int files = 1;
  bool shared_kv = true;  // the files have K and V of layers that borrow them (E2B, E4B)
  bool any_f16 = false;
};

struct ChatInput {
  options::ChatFormat chat = options::ChatFormat::none;
  options::AddBos add_bos = options::AddBos::automatic;
  options::ChatRendering rendering = options::ChatRendering::prompt_and_answer;
  std::optional<bool> system_turns{};              // none: the data has not been read
  std::optional<std::vector<int>> first_tokens{};  // of the first rendered example
  std::string unknown_template{};  // hash of the folder's template, if no published model is known to have it
  std::string not_served{};        // a text that is trained and that the folder's template renders in another way
};

struct MemoryInput {  // of the device that uses most memory
  Bytes capacity, total, logits;
};

struct ServerInput : options::ServerLimits {
  std::optional<std::int64_t> longest_request{};  // tokens that the KV cache holds at least once; none: not planned
};

// How packing changes a run whose rows are padded.
struct PackingInput {
  double rows = 1;         // packed rows per row
  std::int64_t steps = 0;  // of the run; 0: from epochs, which count packed rows themselves
};

struct CheckInput {
  model::Stack stack = model::Stack::tunix;
  Purpose purpose = Purpose::train;
  model::Config config;
  model::TensorInventory inventory;
  std::optional<hardware::Target> target{};  // none: limits of the chips are not checked
  mesh::Mesh mesh{};
  mesh::ShardingRules rules{};
  std::vector<mesh::RequestedPlacement> asked{};
  std::optional<LoraInput> lora{};  // none: full training, or serving the base model
  model::Remat remat = model::Remat::none;
  model::WeightType dtype = model::WeightType::bf16;
  bool dtype_stated = true;  // set by the user; false: the default
  int batch = 1, accumulation = 1, max_len = 512, loss_chunk = 0;
  bool packing = false;
  std::optional<double> real_share{};                 // share of real tokens in a padded batch
  std::optional<PackingInput> packed{};               // none: the lengths are not known
  std::optional<ServerInput> server{};                // none: not a server
  std::map<std::string, std::string> versions{};      // package -> version, "google-tunix" as "tunix"
  std::map<std::string, std::string> model_config{};  // fields of Tunix's ModelConfig that the recipe overrides
  std::optional<CheckpointInput> checkpoint{};
  ChatInput chat{};
  options::Export exported{};
  std::optional<bool> export_folder_used{};  // exported.out is not empty; none: not checked
  std::optional<MemoryInput> memory{};
  std::shared_ptr<struct DerivedInput> derived{};  // of check(), for its rules
};

struct Edit {
  std::string key;
  Json value;  // null: reset to the default
  bool operator==(const Edit&) const = default;
};
// The plan of the document after a fix.
struct FixOutcome {
  bool fits = false;
  double seconds = 0;         // of a step
  double hours = 0, usd = 0;  // of the run; 0: no run, or no price
  double usd_per_million_tokens = 0;
  Bytes peak{};
  bool operator==(const FixOutcome&) const = default;
};
struct Fix {
  std::string label{};  // "Lower tp to 4, raise fsdp to 2"
  std::string cost{};   // the drawback in one clause; empty: none
  std::vector<Edit> edits{};
  std::optional<double> slowdown{};     // predicted, of a step: 0.1 is 10 % slower
  std::optional<FixOutcome> outcome{};  // none: not planned
  bool operator==(const Fix&) const = default;
};
struct Finding {
  std::string id{};
  Severity severity = Severity::error;
  std::string message{}, place{}, found{}, expected{};  // place: the experiment key to change
  std::vector<Fix> fixes{};                             // the recommended one first
};
struct UncheckedRule {
  std::string id, needs;  // "the versions of qwix (stack.versions)"
};
struct Report {
  std::vector<Finding> findings;  // errors first, then by rule
  std::vector<UncheckedRule> unchecked;
};

struct CheckRule;
// Takes what one rule reports, under the id and, unless another is given, the severity of the rule.
class RuleReport {
 public:
  RuleReport(const CheckRule& rule, Report& report) : rule_(rule), report_(report) {}
  void add(Finding finding) const;
  void add(Finding finding, Severity severity) const;
  void unchecked(const std::string& needs) const;

 private:
  const CheckRule& rule_;
  Report& report_;
};

// refuses: with severity error, no stack starts the experiment; the rule reads no inventory. refuses_split: the same,
// of the split of a tensor, which mesh::place reports, too. advises: the experiment runs, with another result or cost.
enum class RuleEffect { advises, refuses, refuses_split };

struct CheckRule {
  std::string_view id;
  Severity severity;
  std::vector<model::Stack> stacks;  // empty: all
  std::string_view title;            // the mistake, one line
  std::string_view why;              // its consequence
  std::string_view evidence;         // source files, pull requests, issues
  void (*look)(const CheckInput& input, const RuleReport& report);
  RuleEffect effect = RuleEffect::advises;
};
std::span<const CheckRule> check_rules();
const CheckRule* find_rule(std::string_view id);

Report check(const CheckInput& input);
// The errors of rules that refuse, for plan and search, which ask thousands of times. The inventory may be empty: the
// fixes then ignore what the model's sizes allow.
std::vector<Finding> check_refusals(const CheckInput& input);
// Whether a finding of this rule and severity means that the experiment does not start.
bool is_refusal(std::string_view id, Severity severity);

// The edits that lead from one mesh to another; an axis that `to` does not have is removed.
std::vector<Edit> mesh_edits(const mesh::Mesh& from, const mesh::Mesh& to);

}  // namespace mw::lint
