// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/sha256.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/files.h"
#include "tests/base/scratch.h"

namespace mw {
namespace {

TEST(Sha256, MatchesTheVectorsOfFips180) {
  Sha256 sha;
  EXPECT_EQ(hex(sha.finish()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha.add("abc").finish()), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha.add("abcdbcdecdefdefgefghfghighijhijk").add("ijkljklmklmnlmnomnopnopq").finish()),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, FieldsDoNotRunIntoEachOther) {
  Sha256 sha;
  const Sha256Digest one = sha.add_field("ab").add_field("c").finish();
  EXPECT_NE(sha.add_field("a").add_field("bc").finish(), one);
}

TEST(Sha256, OfAFileEqualsThatOfItsBytes) {
  const test::Scratch folder;
  std::string bytes(3'000'001, 'x');
  bytes[2'500'000] = '\0';
  write_file_atomically(folder / "f", bytes);
  const FileDigest digest = sha256_of_file(folder / "f");
  EXPECT_EQ(digest.bytes, bytes.size());
  EXPECT_EQ(digest.sha256, Sha256().add(bytes).finish());
  EXPECT_THROW(sha256_of_file(folder / "missing"), Error);
  EXPECT_THROW(sha256_of_file(folder.path()), Error);
}

}  // namespace
}  // namespace mw
