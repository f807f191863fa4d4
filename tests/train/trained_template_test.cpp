// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/checkpoint.h"

#include <gmock/gmock.h>

#include "core/base/files.h"
#include "core/data/tokenizer/chat_template.h"
#include "tests/base/scratch.h"

namespace mw::train {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::filesystem::path kModel = std::filesystem::path(MW_RESOURCES) / "base-model";

data::ChatTemplate of_file(const std::string& text) {
  return {std::make_shared<const data::FolderTemplate>(text, "", Json::object(), "t.jinja"),
          options::ChatFormat::gemma3};
}

TEST(TrainedTemplate, WarnsWhereServingRendersAnotherWay) {
  const mw::test::Scratch folder;
  const auto trained_with = [&](const data::ChatTemplate& chat) {
    write_file_atomically(folder.path() / "trainer_state.json", Json{{"chat_template", template_record(chat)}}.dump());
  };
  const auto warning = [&](const data::ChatTemplate& used) { return template_warning(folder.path(), used); };
  const data::ChatTemplate shipped = data::load_chat_template(kModel, options::ChatFormat::gemma3);
  EXPECT_THAT(warning(shipped), IsEmpty()) << "no checkpoint";
  write_file_atomically(folder.path() / "trainer_state.json", "{\"step\": 3}");
  EXPECT_THAT(warning(shipped), IsEmpty()) << "of an earlier version";

  trained_with(shipped);
  EXPECT_THAT(warning(shipped), IsEmpty());
  EXPECT_THAT(warning(options::ChatFormat::gemma3), IsEmpty()) << "renders the same";
  EXPECT_THAT(warning(options::ChatFormat::gemma4), HasSubstr("rendered with gemma4"));
  const std::string other = warning(of_file("{{ messages[0].content }}"));
  EXPECT_THAT(other, HasSubstr("trained with the chat template Meshwright's base model (aa39b658b285)"));
  // A text that was changed, though not for this conversation.
  EXPECT_THAT(warning(of_file(shipped.folder()->text() + "{# tools #}")), HasSubstr("but conversations"));

  trained_with(options::ChatFormat::gemma2);
  EXPECT_THAT(warning(options::ChatFormat::gemma2), IsEmpty());
  EXPECT_THAT(warning(options::ChatFormat::none), HasSubstr("trained with the chat template gemma2"));
}

}  // namespace
}  // namespace mw::train
