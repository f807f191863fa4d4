// SPDX-License-Identifier: Apache-2.0
#include "core/train/trained_template.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/sha256.h"
#include "core/data/tokenizer/chat_template.h"

namespace mw::train {
namespace {

std::string rendered_hash(const data::ChatTemplate& chat) try {
  std::string text;
  for (const data::Span& span : data::render_chat(chat, {{"user", "a"}, {"assistant", "b"}, {"user", "c"}}))
    text += span.text;
  return hex(Sha256().add(text).finish());
} catch (const Error&) {
  return {};  // the template refuses this conversation
}

std::string text_of(const Json& record, const char* key) {
  const Json* value = find_member(record, key);
  return value && value->is_string() ? value->get<std::string>() : std::string();
}

std::string shown(const Json& record) {
  const std::string name = text_of(record, "name"), hash = text_of(record, "sha256").substr(0, 12);
  return name.empty() ? hash : hash.empty() ? name : name + " (" + hash + ")";
}

}  // namespace

Json template_record(const data::ChatTemplate& chat) {
  const data::FolderTemplate* folder = chat.folder();
  return {{"name", folder ? std::string(folder->published_as()) : std::string(to_string(chat.format()))},
          {"sha256", folder ? folder->sha256() : std::string()},
          {"rendered", rendered_hash(chat)}};
}

std::string template_warning(const std::filesystem::path& folder, const data::ChatTemplate& used) {
  const std::filesystem::path file = folder / "trainer_state.json";
  if (!is_file(file)) return {};
  const Json state = read_json(file);
  const Json* trained = state.is_object() ? find_member(state, "chat_template") : nullptr;
  if (!trained || !trained->is_object()) return {};  // earlier versions do not write it
  const Json now = template_record(used);
  const auto same = [&](const char* key) { return text_of(*trained, key) == text_of(now, key); };
  // Two files differ if their texts do; a built-in template is compared by what it renders.
  const bool both_files = !text_of(*trained, "sha256").empty() && !text_of(now, "sha256").empty();
  if (both_files ? same("sha256") : same("rendered")) return {};
  return folder.filename().string() + " was trained with the chat template " + shown(*trained) +
         ", but conversations are rendered with " + shown(now) +
         ": serve it with the template of training, or train again";
}

}  // namespace mw::train
