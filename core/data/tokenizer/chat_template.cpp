// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenizer/chat_template.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <mutex>
#include <optional>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/sha256.h"
#include "core/base/text.h"

namespace mw::data {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLongestTemplate = 4 << 20;  // bytes

struct PublishedTemplate {
  std::string_view sha256, name;
};
// SHA-256 of each text without a newline at its end. The sources are in scripts/fixtures/chat_templates.py.
constexpr std::array<PublishedTemplate, 8> kPublished{{
    {"aa39b658b285984121d3fc024db460914c77d4acb55ff072ef2093205c741143", "Meshwright's base model"},
    {"ecd6ae513fe103f0eb62e8ab5bfa8d0fe45c1074fa398b089c93a7e70c15cfd6", "google/gemma-7b-it and gemma-2-*-it"},
    {"8d9e3a3c114fb2053ec500184677af4f7e5f8ec2582443cd535834e68b3ade29", "google/gemma-3-*-it"},
    {"9cae32b35b45454e9bd3673b4011701b77d38843622ab9b6e3f930bc503cf28a", "google/gemma-3n-*-it"},
    {"1d35a24a2a63cc600c0cab43628a6df4cd3318e959b03307cf5f9f7e29ecf783", "google/gemma-4-31B-it"},
    {"df900edd2fcee5defc268bee887666c43c976d973bb3e87355b52423a651bf91", "google/gemma-4-31B-it, interleaved"},
    {"df17f9c510b855e1b0c790f2088d4c6482fc715ce824988d72eec66785f05044", "gemma-4, as unsloth 2026.10 has it"},
    {"75d6600715864cdbe878f8a92658bed260570c2c1809195cc7b0b98b08ae1a8e",
     "gemma-4 E2B and E4B, as unsloth 2026.10 has it"},
}};

Json as_json(const std::vector<Message>& messages) {
  Json out = Json::array();
  for (const Message& m : messages) {
    Json one{{"role", m.role}, {"content", m.text}};
    if (m.fields.is_object())
      for (const auto& field : m.fields.items()) one[field.key()] = field.value();
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<Message> first_of(const std::vector<Message>& messages, size_t n) {
  return {messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(n)};
}

size_t size_without_trailing_space(std::string_view text) {
  const std::string_view inner = trim(text);
  return inner.empty() ? 0 : static_cast<size_t>(inner.end() - text.begin());
}

// Begins at midnight, so that rows that are tokenised on one day are the same.
std::time_t today() {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  localtime_r(&now, &day);
  day.tm_hour = day.tm_min = day.tm_sec = 0;
  day.tm_isdst = -1;
  return std::mktime(&day);
}

void add_span(std::vector<ChatSpan>& spans, std::string_view text, bool assistant) {
  if (!text.empty() || assistant) spans.push_back({std::string(text), assistant});
}

}  // namespace

FolderTemplate::FolderTemplate(const std::string& text, const std::string& tool_text, Json tokens,
                               const std::string& source)
    : template_(text, source),
      tokens_(std::move(tokens)),
      text_(text),
      tool_text_(tool_text),
      source_(source),
      now_(today()) {
  if (!tool_text.empty()) with_tools_.emplace_back(tool_text, source);
  if (const Json* bos = find_member(tokens_, "bos_token"); bos && bos->is_string()) bos_ = bos->get<std::string>();
  const std::string_view all_text(text);
  sha256_ = hex(Sha256().add(all_text.substr(0, all_text.size() - (text.ends_with('\n') ? 1 : 0))).finish());
  Sha256 all;
  all.add_field(text).add_field(tool_text).add_field(tokens_.dump());
  if ((text + tool_text).find("strftime_now") != std::string::npos) all.add_number(static_cast<std::uint64_t>(now_));
  identity_ = hex(all.finish());
  find_markers();
}

jinja::Rendered FolderTemplate::run(const std::vector<Message>& messages, const Json& tools, Turn turn,
                                    const Json& values) const {
  Json variables = tokens_;
  if (values.is_object()) variables.update(values);
  variables["messages"] = as_json(messages);
  const bool has_tools = tools.is_array() && !tools.empty();
  variables["tools"] = has_tools ? tools : Json(nullptr);
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = turn == Turn::open;
  const jinja::Template& used = has_tools && !with_tools_.empty() ? with_tools_.front() : template_;
  jinja::Rendered out = used.render(variables, now_);
  // The encoder adds bos.
  if (bos_.empty() || !out.text.starts_with(bos_)) return out;
  out.text.erase(0, bos_.size());
  for (jinja::GeneratedRange& range : out.generated) {
    range.begin -= std::min(range.begin, bos_.size());
    range.end -= std::min(range.end, bos_.size());
  }
  return out;
}

// The answer follows what is rendered before it, and ends where the rendering up to it ends. Templates that render
// earlier answers in another way (without their thoughts) are found by changing the answer: what stays the same is
// before and behind it.
FolderTemplate::Range FolderTemplate::find_answer(size_t i, const std::vector<Message>& whole, Turn turn,
                                                  const std::string& text, const Json& tools) const {
  Range out;
  const std::string before = run(first_of(whole, i), tools, Turn::open).text;
  // The whole answer is replaced, because a template may drop a part of it. There are two replacements, because the
  // first may begin or end with the same letter as the answer.
  const auto others = [&] {
    std::array<std::string, 2> texts;
    std::vector<Message> other = whole;
    for (size_t letter = 0; letter < texts.size(); ++letter) {
      other[i].text = letter == 0 ? "x" : "y";
      texts[letter] = run(other, tools, turn).text;
    }
    return texts;
  };
  if (text.starts_with(before)) {
    out.begin = before.size();
  } else {
    out.begin = text.size();
    for (const std::string& other : others()) {
      const auto same = std::mismatch(text.begin(), text.end(), other.begin(), other.end());
      out.begin = std::min(out.begin, static_cast<size_t>(same.first - text.begin()));
    }
  }
  std::string upto = run(first_of(whole, i + 1), tools, Turn::closed).text;
  upto.resize(size_without_trailing_space(upto));
  if (text.starts_with(upto) && upto.size() >= out.begin) {
    out.end = upto.size();
    return out;
  }
  out.end = 0;
  for (const std::string& other : others()) {
    const auto same = std::mismatch(text.rbegin(), text.rend(), other.rbegin(), other.rend());
    out.end = std::max(out.end, text.size() - static_cast<size_t>(same.first - text.rbegin()));
  }
  if (std::string_view(text).substr(out.end).starts_with(end_)) out.end += end_.size();
  return out;
}

std::vector<ChatSpan> FolderTemplate::render(const std::vector<Message>& messages, const Json& tools) const {
  std::vector<size_t> answers;
  for (size_t i = 0; i < messages.size(); ++i)
    if (messages[i].role == "assistant") answers.push_back(i);
  jinja::Rendered closed = run(messages, tools, Turn::closed);
  std::vector<Range> ranges;
  std::string text = std::move(closed.text);
  if (!answers.empty() && closed.generated.size() == answers.size()) {
    for (const jinja::GeneratedRange& g : closed.generated) ranges.push_back({g.begin, g.end});
  } else {
    // The last answer is trained behind the prompt that a server sends, also where the template renders a finished
    // conversation in another way.
    const bool ends_with_answer = !answers.empty() && answers.back() + 1 == messages.size();
    std::vector<Message> whole = messages;
    std::string rendered = text;  // of `whole`
    Turn turn = Turn::closed;
    std::optional<Range> last;
    if (ends_with_answer) {
      const std::vector<Message> before = first_of(messages, answers.back());
      const std::string prompt = run(before, tools, Turn::open).text;
      const size_t begin =
          text.starts_with(prompt) ? prompt.size() : find_answer(answers.back(), messages, turn, text, tools).begin;
      text = prompt + text.substr(std::min(begin, text.size()));
      last = {prompt.size(), std::max(prompt.size(), size_without_trailing_space(text))};
      answers.pop_back();
      whole = before;
      rendered = prompt;
      turn = Turn::open;
    }
    for (const size_t i : answers) ranges.push_back(find_answer(i, whole, turn, rendered, tools));
    if (last) ranges.push_back(*last);
  }
  std::vector<ChatSpan> spans;
  size_t at = 0;
  for (const Range& r : ranges) {
    if (r.begin < at || r.end < r.begin || r.end > text.size())
      throw Error("TOK-2", "the answers cannot be found in the rendered text of the chat template",
                  {.file = source_,
                   .place = "answer " + std::to_string(&r - ranges.data() + 1),
                   .expected = "a template that renders answers in the order of the messages",
                   .fix = "mark the answers with {% generation %}, or choose a built-in template in data.chat"});
    add_span(spans, std::string_view(text).substr(at, r.begin - at), false);
    add_span(spans, std::string_view(text).substr(r.begin, r.end - r.begin), true);
    at = r.end;
  }
  add_span(spans, std::string_view(text).substr(at), false);
  return spans;
}

std::string FolderTemplate::render_prompt(const std::vector<Message>& messages, const Json& tools,
                                          const Json& values) const {
  return run(messages, tools, Turn::open, values).text;
}

bool FolderTemplate::mentions(std::string_view variable) const {
  const auto is_word = [](const std::string& text, size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
  };
  for (const std::string* text : {&text_, &tool_text_})
    for (size_t at = text->find(variable); at != std::string::npos; at = text->find(variable, at + 1))
      if ((at == 0 || !is_word(*text, at - 1)) && !is_word(*text, at + variable.size())) return true;
  return false;
}

std::string_view FolderTemplate::published_as() const {
  for (const PublishedTemplate& p : kPublished)
    if (p.sha256 == sha256_) return p.name;
  return {};
}

// A template that refuses this conversation has no known markers; its answers end at eos.
void FolderTemplate::find_markers() try {
  const std::string prompt = run({{"user", "a"}}, {}, Turn::open).text;
  if (prompt.starts_with('<')) start_ = prompt.substr(0, prompt.find('>') + 1);
  const std::string probe = "qzxq";
  std::string answered = run({{"user", "a"}, {"assistant", probe}}, {}, Turn::closed).text;
  answered.resize(size_without_trailing_space(answered));
  const size_t content = answered.rfind(probe);
  if (content != std::string::npos) end_ = answered.substr(content + probe.size());
} catch (const Error&) {
}

namespace {

struct TemplateFiles {
  std::string text, tool_text, source;
  Json tokens = Json::object();
};

// A string, or a list of {name, template}.
void read_member(const Json& value, const fs::path& file, TemplateFiles& out) {
  const auto fail = [&](const std::string& found) {
    throw Error("TEMPLATE", "chat_template is not a template",
                {.file = file.string(),
                 .place = "chat_template",
                 .found = found,
                 .expected = "a string, or a list of objects with name and template"});
  };
  out.source = file.string();
  if (value.is_string()) {
    out.text = value.get<std::string>();
    return;
  }
  if (!value.is_array()) fail(value.type_name());
  for (const Json& one : value) {
    const Json *name = find_member(one, "name"), *text = find_member(one, "template");
    if (!name || !text || !name->is_string() || !text->is_string()) fail(json_excerpt(one));
    if (*name == "default") out.text = text->get<std::string>();
    if (*name == "tool_use") out.tool_text = text->get<std::string>();
  }
  if (out.text.empty()) fail("no template named default");
}

TemplateFiles read_files(const fs::path& folder) {
  TemplateFiles out;
  if (const fs::path file = folder / "chat_template.json"; is_file(file)) {
    const Json json = read_json(file);
    if (const Json* value = find_member(json, "chat_template")) read_member(*value, file, out);
  }
  if (const fs::path file = folder / "tokenizer_config.json"; is_file(file)) {
    const Json json = read_json(file);
    for (const auto& member : json.items()) {
      if (!member.key().ends_with("_token")) continue;
      const Json& token = member.value();
      if (token.is_string()) out.tokens[member.key()] = token;
      if (const Json* content = find_member(token, "content"); content && content->is_string())
        out.tokens[member.key()] = *content;
    }
    if (const Json* value = find_member(json, "chat_template")) read_member(*value, file, out);
  }
  if (const fs::path file = folder / "chat_template.jinja"; is_file(file)) {
    out.text = read_text(file, kLongestTemplate);
    out.tool_text.clear();
    out.source = file.string();
  }
  return out;
}

using Stamps = std::vector<std::pair<std::uintmax_t, fs::file_time_type>>;
Stamps stamps_of(const fs::path& folder) {
  Stamps out;
  for (const char* name : {"chat_template.json", "tokenizer_config.json", "chat_template.jinja"}) {
    std::error_code ec;
    const auto size = fs::file_size(folder / name, ec);
    out.emplace_back(ec ? 0 : size, fs::last_write_time(folder / name, ec));
  }
  return out;
}

}  // namespace

ChatTemplate load_chat_template(const fs::path& path, options::ChatFormat instead_of) {
  if (path.empty()) return instead_of;
  const fs::path folder = is_file(path) ? path.parent_path() : path;
  struct Known {
    Stamps stamps;
    std::time_t day = 0;
    std::shared_ptr<const FolderTemplate> loaded;  // null: the folder has none
  };
  static std::mutex mutex;
  static std::map<fs::path, Known> known;
  const Stamps stamps = stamps_of(folder);
  const std::lock_guard lock(mutex);
  Known& entry = known[folder];
  if (entry.stamps != stamps || entry.day != today()) {
    const TemplateFiles files = read_files(folder);
    entry = {stamps, today(), nullptr};
    if (!files.text.empty()) {
      entry.stamps.clear();  // a template that cannot be parsed is read again
      entry.loaded = std::make_shared<const FolderTemplate>(files.text, files.tool_text, files.tokens, files.source);
      entry.stamps = stamps;
    }
  }
  return entry.loaded ? ChatTemplate(entry.loaded, instead_of) : ChatTemplate(instead_of);
}

}  // namespace mw::data
