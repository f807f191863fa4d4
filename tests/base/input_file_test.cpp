// SPDX-License-Identifier: Apache-2.0
#include "core/base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/json.h"
#include "tests/base/scratch.h"

namespace mw {
namespace {

namespace fs = std::filesystem;
using test::Scratch;
using testing::HasSubstr;

Problem refusal_of(const fs::path& file) {
  try {
    read_file(file, 1 << 20);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::bad_input) << error.what();
    return error.problem();
  }
  ADD_FAILURE() << file << " was read";
  return {};
}

TEST(InputFile, RejectsNonRegularFiles) {
  const Scratch folder;
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& [file, kind] : {std::pair(folder.path(), "a folder"), std::pair(fs::path("/dev/zero"), "a device"),
                                   std::pair(pipe, "a named pipe")}) {
    const Problem refused = refusal_of(file);
    EXPECT_EQ(refused.message, "not a regular file");
    EXPECT_EQ(refused.found, kind);
    EXPECT_TRUE(read_beginning(file, 10).empty());
  }
}

TEST(InputFile, RejectsFilesAboveSizeLimit) {
  const Scratch folder;
  const fs::path file = folder.put("large", std::string((1 << 20) + 1, ' '));
  EXPECT_EQ(refusal_of(file).id, "FILE-SIZE");
  EXPECT_EQ(read_beginning(file, 3), "   ");
  fs::resize_file(file, kMaxJsonFile + 1);  // sparse
  try {
    read_json(file);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.problem().id, "FILE-SIZE");
  }
}

TEST(InputFile, ReadsInheritedPipeWithinLimit) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "{\"a\": 1}", 8), 8);
  ::close(ends[1]);
  EXPECT_EQ(read_json("/dev/fd/" + std::to_string(ends[0]))["a"], 1);
  ::close(ends[0]);
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "12345678", 8), 8);
  ::close(ends[1]);
  EXPECT_THROW(read_file("/dev/fd/" + std::to_string(ends[0]), 7), Error);
  ::close(ends[0]);
}

TEST(InputFile, ReportsGitLfsPointer) {
  const Scratch folder;
  const fs::path file =
      folder.put("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
  EXPECT_THAT(refusal_of(file).fix, HasSubstr("git lfs pull"));
}

TEST(InputFile, ReportsEmptyJsonFile) {
  const Scratch folder;
  for (const char* text : {"", " \n"}) try {
      read_json(folder.put("e.json", text));
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.problem().message, "the file is empty");
    }
}

TEST(InputFile, SkipsByteOrderMarkAndRejectsUtf16) {
  const Scratch folder;
  const fs::path file = folder.put("bom.json", "\xEF\xBB\xBF{\"a\": 1}");
  EXPECT_EQ(read_json(file)["a"], 1);
  EXPECT_EQ(read_text(file, 100), "{\"a\": 1}");
  const fs::path wide = folder.put("wide.json", std::string_view("\xFF\xFE{\0}\0", 6));
  try {
    read_json(wide);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.problem().message, HasSubstr("UTF-16"));
    EXPECT_THAT(error.problem().fix, HasSubstr("UTF-8"));
  }
}

}  // namespace
}  // namespace mw
