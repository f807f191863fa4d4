// SPDX-License-Identifier: GPL-3.0-or-later
// Everything that reads what others wrote, as functions of bytes: tests/fuzz feeds them to libFuzzer, replay_test.cpp
// holds them to the seeds and to what was once found. A function may throw mw::Error and nothing else.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/base/scratch.h"

namespace mw::readers {

struct Reader {
  std::string name;
  void (*read)(std::string_view bytes);
  std::vector<std::string> (*seeds)();
  size_t max_len = 3072;          // of generated inputs; longer seeds are cut
  size_t factor = 400;            // bytes in memory at once, at most: this much times the input ...
  size_t fixed_bytes = 12 << 20;  // ... and this
};

// Each reader also has a function of its own, NAME_reader(), which is all that its fuzzer links.
std::vector<Reader> formats_readers();
std::vector<Reader> orbax_readers();
std::vector<Reader> results_readers();
std::vector<Reader> data_readers();
std::vector<Reader> serve_readers();
std::vector<Reader> experiment_readers();

using test::Scratch;  // each reader's own is static: files in it stay from call to call

std::string fixture(const std::string& path);   // content of a file below tests/fixtures
std::string resource(const std::string& path);  // below resources
// Contents of the fixtures below `folder` whose file is called so.
std::vector<std::string> fixtures_called(const std::string& folder, const std::string& file);

// Inputs that together reach all that the fuzzers ever reached in a reader. Its file has of each input the length in
// decimal, a newline, the bytes; no file, no inputs. Throws std::runtime_error when the file is not made so.
std::filesystem::path corpus_file(const std::string& reader);
std::vector<std::string> corpus(const std::string& reader);
std::string packed(const std::vector<std::string>& inputs);

// The first byte chooses among `n`, the rest is the input.
struct Choice {
  size_t which;
  std::string_view rest;
};
Choice choose(std::string_view bytes, size_t n);

}  // namespace mw::readers
