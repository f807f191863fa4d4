// SPDX-License-Identifier: Apache-2.0
// The checker: sharding and recipe mistakes, most of them known problems of Tunix, as a table of rules over plain
// input. Pure: no file is read. What the facts cannot tell is said to be unchecked, never passed. Any thread.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/units.h"
#include "core/mesh/layout/layout.h"
#include "core/mesh/layout/placement.h"
#include "core/mesh/layout/size_constraints.h"
#include "core/model/types.h"

namespace mw::lint {

using model::Stack;
enum class Purpose { train, serve };
enum class Chat { none, gemma2, gemma3, gemma4 };
enum class AddBos { automatic, always, never };  // what the stack's tokenizer adds, whatever the template does
enum class ChatRendering { prompt_and_answer, conversation };
enum class MergeTool { none, tunix, meshwright };  // who writes merged weights after training
enum class AdapterServing { merged, adapter };

struct LoraInput {
  std::vector<model::Role> targets;  // what the user wants adapted
  std::string module_path;           // the expression given; empty: made from targets
  int rank = 16;
  double alpha = 16;
  bool rslora = false;
  std::optional<std::vector<std::string>> adapter_tensors{};  // names in the PEFT adapter at hand
};

struct CheckpointInput {                 // of the files to load, against the inventory
  std::string prefix;                    // before "layers.": "model.language_model."
  std::vector<std::string> unmatched{};  // language-model names the inventory does not have
  std::vector<std::string> missing{};    // inventory tensors that are not there
  std::int64_t embedding_rows = 0;
  int files = 1;
  bool shared_kv = true;  // K and V of layers that borrow them are there (E2B, E4B)
  bool any_f16 = false;
};

struct ChatInput {
  Chat chat = Chat::none;
  AddBos add_bos = AddBos::automatic;
  ChatRendering rendering = ChatRendering::prompt_and_answer;
  std::optional<bool> system_turns{};              // unknown until the data is read
  std::optional<std::vector<int>> first_tokens{};  // of a rendered example
};

struct ExportInput {
  MergeTool merge = MergeTool::none;
  std::optional<int> rank{};  // what the exporter is told, where it is not the training's
  std::optional<double> alpha{};
  std::string folder{};
  std::optional<bool> folder_used{};  // something is in it; unknown: not looked
  AdapterServing serve_as = AdapterServing::merged;
};

struct MemoryInput {  // of the fullest device
  Bytes capacity, total, logits;
};

struct CheckInput {
  Stack stack = Stack::tunix;
  Purpose purpose = Purpose::train;
  model::Config config;
  model::TensorInventory inventory;
  std::optional<hardware::Target> target{};  // unknown: what the chips allow is not checked
  mesh::Mesh mesh{};
  mesh::ShardingRules rules{};
  std::vector<mesh::RequestedPlacement> asked{};
  std::optional<LoraInput> lora{};  // none: full training, or the base is served
  model::Remat remat = model::Remat::none;
  model::WeightType dtype = model::WeightType::bf16;
  bool dtype_stated = true;  // by the user, not the default
  int batch = 1, accumulation = 1, max_len = 512, loss_chunk = 0;
  bool packing = false;
  std::optional<double> real_share{};                 // of the tokens of a padded batch
  std::map<std::string, std::string> versions{};      // package -> version, "google-tunix" as "tunix"
  std::map<std::string, std::string> model_config{};  // fields of Tunix's ModelConfig that the recipe replaces
  std::optional<CheckpointInput> checkpoint{};
  ChatInput chat{};
  ExportInput exported{};
  std::optional<MemoryInput> memory{};
};

struct Edit {
  std::string key;
  Json value;  // null: back to the default
  bool operator==(const Edit&) const = default;
};
struct Fix {
  std::string label{};  // "Lower tp to 4, raise fsdp to 2"
  std::string cost{};   // what it takes, one clause; empty: nothing
  std::vector<Edit> edits{};
};
struct Finding {
  std::string id;
  Severity severity = Severity::error;
  std::string message{}, place{}, found{}, expected{};  // place: the experiment key at fault
  std::vector<Fix> fixes{};                             // the first is the one to take
};
struct UncheckedRule {
  std::string id, needs;  // "the versions of qwix (stack.versions)"
};
struct Report {
  std::vector<Finding> findings;  // errors first, then by rule
  std::vector<UncheckedRule> unchecked;
};

struct CheckRule {
  std::string_view id;
  Severity severity;
  std::vector<Stack> stacks;  // empty: all
  std::string_view title;     // the condition, one line
  std::string_view why;       // what happens to those who miss it
  std::string_view evidence;  // source lines, pull requests, issues
  void (*look)(const CheckInput& input, Report& report);
};
std::span<const CheckRule> check_rules();
const CheckRule* find_rule(std::string_view id);

Report check(const CheckInput& input);

}  // namespace mw::lint
