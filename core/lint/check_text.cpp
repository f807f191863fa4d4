// SPDX-License-Identifier: Apache-2.0
// Rules about the model's input and its logits: TOK, PAD, LOGITS.
#include <algorithm>
#include <cmath>

#include "core/base/counted.h"
#include "core/lint/rules.h"

namespace mw::lint {
namespace {

constexpr int kBos = 2;

Fix bos_fix(const CheckInput& input) {
  if (input.chat.add_bos != options::AddBos::automatic)
    return {"Let the recipe put one <bos>", "", {{"stack.add_bos", nullptr}}};
  return {"Add <bos> in the recipe", "", {{"stack.add_bos", "always"}}};
}

// How many <bos> an example starts with. Templates of the families write one; Gemma 2's and 3's tokenizers add one to
// text without a template, Gemma 4's does not.
int leading_bos(const CheckInput& input) {
  const ChatInput& t = input.chat;
  if (t.first_tokens) {
    const auto& ids = *t.first_tokens;
    return static_cast<int>(std::find_if(ids.begin(), ids.end(), [](int id) { return id != kBos; }) - ids.begin());
  }
  const int written = t.chat == options::ChatFormat::none ? 0 : 1;
  switch (t.add_bos) {
    case options::AddBos::always:
      return written + 1;
    case options::AddBos::never:
      return written;
    case options::AddBos::automatic:
      break;
  }
  const bool adds = input.config.family == model::Family::gemma2 || input.config.family == model::Family::gemma3;
  return written == 1 || adds ? 1 : 0;
}

bool is_gemma(const CheckInput& input) {
  using enum model::Family;
  return input.config.family == gemma2 || input.config.family == gemma3 || input.config.family == gemma4;
}

void tok_1(const CheckInput& input, const RuleReport& report) {
  if (!is_gemma(input)) return;  // token 2 is Gemma's <bos>
  const int bos = leading_bos(input);
  if (bos == 1) return;
  report.add({.message = bos == 0 ? "examples do not start with <bos>" : "examples start with two <bos>",
              .place = "stack.add_bos",
              .found = std::to_string(bos) + " of token 2 at the start",
              .expected = "exactly one",
              .fixes = {bos_fix(input)}});
}

void tok_2(const CheckInput& input, const RuleReport& report) {
  const options::ChatFormat chat = input.chat.chat;
  const bool gemma3 = chat == options::ChatFormat::gemma3 && input.stack == model::Stack::tunix;
  if (chat != options::ChatFormat::gemma2 && !gemma3) return;
  if (!input.chat.system_turns) return report.unchecked("whether the data has system turns (data.path)");
  if (!*input.chat.system_turns) return;
  report.add(
      {.message = gemma3
                      ? "Tunix joins the system text to the first user turn with one line break, Hugging Face with two"
                      : "the Gemma 2 template refuses a system turn",
       .place = "data.columns.system",
       .found = "system turns",
       .expected = gemma3 ? "the same tokens in training and serving" : "user and model turns only",
       .fixes = {
           {"Leave the system column out", "the model does not see its text", {{"data.columns.system", nullptr}}}}});
}

void tok_3(const CheckInput& input, const RuleReport& report) {
  const bool adds_channel = input.config.family == model::Family::gemma4 && input.config.ple_dim == 0;
  if (!adds_channel || input.chat.chat != options::ChatFormat::gemma4 ||
      input.chat.rendering != options::ChatRendering::conversation)
    return;
  report.add(
      {.message = "training text has no empty thought channel, but this model's generation prompt adds one",
       .place = "stack.rendering",
       .found = "conversation",
       .expected = "prompt_and_answer",
       .fixes = {{"Render the generation prompt, then the answer", "", {{"stack.rendering", "prompt_and_answer"}}}}});
}

void tok_4(const CheckInput& input, const RuleReport& report) {
  if (input.chat.not_served.empty()) return;
  report.add({.message = "the template of the model's folder, which servers use, renders a conversation in another way",
              .place = "data.chat",
              .found = text_excerpt(input.chat.not_served),
              .expected = "the same text in training and serving",
              .fixes = {{"Train with the template of the folder", "", {{"data.chat", nullptr}}}}});
}

void tok_5(const CheckInput& input, const RuleReport& report) {
  if (!is_gemma(input) || input.chat.unknown_template.empty()) return;
  report.add({.message = "the chat template of the folder is none of the published ones of Gemma",
              .place = "model.path",
              .found = "SHA-256 " + input.chat.unknown_template.substr(0, 16),
              .expected = "the template that the model was tuned with, if it was changed by accident"});
}

constexpr double kPaddingLimit = 0.30;

// Packing alone changes no time: each step computes as many tokens and sees more examples. With fewer steps the run
// sees the same examples as before.
Fix packing_fix(const CheckInput& input) {
  Fix fix{
      "Pack short examples into one row", "steps see more examples: adjust steps or batch", {{"data.packing", true}}};
  if (!input.packed) return fix;
  const std::int64_t steps = input.packed->steps;
  const auto enough =
      std::max<std::int64_t>(1, std::llround(std::ceil(static_cast<double>(steps) * input.packed->rows)));
  fix.cost.clear();
  if (steps == 0 || enough >= steps) return fix;
  fix.label += ", with " + counted(enough, "step") + " for the same examples";
  fix.edits.push_back({"train.steps", enough});
  return fix;
}

void pad_1(const CheckInput& input, const RuleReport& report) {
  if (input.purpose != Purpose::train || input.packing) return;
  if (!input.real_share) return report.unchecked("the lengths of the rows (data.path or data.lengths)");
  const double padding = 1 - *input.real_share;
  if (padding <= kPaddingLimit) return;
  report.add({.message = number_text(100 * padding, 2) + " % of the computed tokens are padding",
              .place = "data.packing",
              .found = number_text(100 * *input.real_share, 2) + " % tokens without padding",
              .expected = "at least 70 %",
              .fixes = {packing_fix(input)}});
}

void logits_1(const CheckInput& input, const RuleReport& report) {
  if (input.purpose != Purpose::train || input.loss_chunk != 0) return;
  if (!input.memory) return report.unchecked("a memory plan of the target (target.id)");
  const MemoryInput& m = *input.memory;
  // Report logits only if they are the cause: the rest would fit, or the logits alone do not.
  const bool too_large = m.total > m.capacity && (m.total - m.logits <= m.capacity || m.logits > m.capacity);
  if (!too_large) return;
  report.add({.message = "all logits at once do not fit",
              .place = "train.loss_chunk",
              .found = to_text(m.logits) + " of logits, " + to_text(m.total) + " in all",
              .expected = "at most " + to_text(m.capacity),
              .fixes = {{"Compute the loss by 256 rows", "a little time per chunk", {{"train.loss_chunk", 256}}}}});
}

}  // namespace

std::vector<CheckRule> text_rules() {
  const std::vector<model::Stack> others{model::Stack::tunix, model::Stack::torchax, model::Stack::trl_fsdp};
  return {
      {"TOK-1", Severity::error, others, "Not exactly one <bos> at the start",
       "Without <bos> the loss is 3.6 to 6.6 nats higher; two of them also degrade the model. Gemma 4's tokenizer adds "
       "none.",
       "EleutherAI/lm-evaluation-harness#1465; unslothai/unsloth#7903; ggml-org/llama.cpp#21500", tok_1},
      {"TOK-2", Severity::error, kAllStacks, "A system turn that the template rejects or renders differently",
       "Gemma 2's template raises; Tunix's Gemma 3 parser joins with one line break and trains on other tokens.",
       "Gemma 2 chat template; tunix/rl/agentic/parser/chat_template_parser/parser.py", tok_2},
      {"TOK-3", Severity::warning, others, "Gemma 4 training text without the empty thought channel",
       "With thinking off the larger models' generation prompt ends in an empty channel; text rendered from history "
       "has none, so the tuned model gets prompts unlike those of its training.",
       "google-gemma-4-31B-it template; oarriaga/paz#439", tok_3},
      {"TOK-4", Severity::warning, kAllStacks, "A built-in chat template that differs from that of the model's folder",
       "Servers render prompts with the folder's template; tokens that training did not see lower the quality.",
       "transformers and vLLM apply chat_template of the tokenizer", tok_4},
      {"TOK-5", Severity::info, kAllStacks, "A chat template that no published Gemma model is known to have",
       "It is rendered as it is. A changed template gives the model other tokens than those it was tuned with.",
       "SHA-256 of the templates of Gemma 2, 3 and 4", tok_5},
      {"PAD-1", Severity::warning, kAllStacks, "More than 30 % of the tokens are padding",
       "Padding costs as much time as text: packing puts several examples into one row.", "", pad_1},
      {"LOGITS-1", Severity::error, kAllStacks, "Full logits that do not fit",
       "A vocabulary of 262,144 takes a megabyte of float32 per token, and its gradient as much again.",
       "262144 x 4 bytes; tunix computes logits in float32", logits_1},
  };
}

}  // namespace mw::lint
