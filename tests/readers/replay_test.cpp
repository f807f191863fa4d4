// SPDX-License-Identifier: GPL-3.0-or-later
// Runs every reader on its seeds, on damaged seeds, on the fuzzing corpus (tests/readers/corpus) and on the inputs of
// former failures (tests/readers/found). Each must return values or throw mw::Error.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/rng.h"
#include "tests/readers/reader.h"

namespace mw::readers {
namespace {

namespace fs = std::filesystem;

std::vector<Reader> all_readers() {
  std::vector<Reader> all;
  for (const auto readers : {formats_readers, orbax_readers, results_readers, data_readers, serve_readers,
                             experiment_readers, config_readers, port_readers})
    for (Reader& reader : readers()) all.push_back(std::move(reader));
  return all;
}

class EveryReader : public testing::TestWithParam<Reader> {
 protected:
  enum class Outcome { values, error };
  static Outcome try_out(const std::string& bytes) {
    try {
      GetParam().read(bytes);
      return Outcome::values;
    } catch (const Error&) {
      return Outcome::error;
    }  // anything else fails the test
  }
};

TEST_P(EveryReader, AcceptsSeeds) {
  int taken = 0;
  for (const std::string& seed : GetParam().seeds()) taken += try_out(seed) == Outcome::values;
  EXPECT_GT(taken, 0) << "no seed is read to its end: fuzzing would never get far";
}

TEST_P(EveryReader, DamagedSeedsGiveValuesOrError) {
  Rng rng{11};
  std::uint64_t at = 0;
  for (const std::string& seed : GetParam().seeds())
    for (int i = 0; i < 20 && !seed.empty(); ++i) {
      std::string bytes = seed;
      const auto place = static_cast<size_t>(rng.at(at++) % bytes.size());
      if (i % 4 == 0)
        bytes.resize(place);
      else
        bytes[place] = static_cast<char>(rng.at(at++));
      try_out(bytes);
    }
}

// The build "asan" also runs the checks that fuzzing omits.
TEST_P(EveryReader, AcceptsCorpus) {
  const std::vector<std::string> inputs = corpus(GetParam().name);
  ASSERT_FALSE(inputs.empty()) << "fuzz it, then: scripts/fuzz.sh --minimise " << GetParam().name;
  EXPECT_EQ(packed(inputs), read_file(corpus_file(GetParam().name)));
  for (size_t i = 0; i < inputs.size(); ++i) {
    SCOPED_TRACE("input " + std::to_string(i));
    try_out(inputs[i]);
  }
}

TEST(Fuzzers, AreListedForEveryReader) {
  const std::string listed = read_file(fs::path(MW_FIXTURES).parent_path() / "fuzz" / "CMakeLists.txt");
  for (const Reader& reader : all_readers()) {
    const bool inside = listed.find(" " + reader.name + " ") != std::string::npos;
    EXPECT_TRUE(inside || listed.find(" " + reader.name + ")") != std::string::npos) << reader.name;
  }
}

// Inputs of former failures.
TEST(FormerFailures, GiveValuesOrError) {
  const std::vector<Reader> all = all_readers();
  int inputs = 0;
  for (const auto& folder : fs::directory_iterator(fs::path(MW_SOURCE_DIR) / "tests/readers/found")) {
    const std::string name = folder.path().filename().string();
    const auto reader = std::find_if(all.begin(), all.end(), [&](const Reader& r) { return r.name == name; });
    ASSERT_NE(reader, all.end()) << "no reader is called " << name;
    for (const auto& entry : fs::directory_iterator(folder)) {
      SCOPED_TRACE(name + "/" + entry.path().filename().string());
      try {
        reader->read(read_file(entry.path()));
      } catch (const Error&) {
      }
      ++inputs;
    }
  }
  EXPECT_GT(inputs, 0);
}

INSTANTIATE_TEST_SUITE_P(Readers, EveryReader, testing::ValuesIn(all_readers()),
                         [](const auto& reader) { return reader.param.name; });

}  // namespace
}  // namespace mw::readers
