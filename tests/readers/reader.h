// SPDX-License-Identifier: GPL-3.0-or-later
// All readers of foreign data as functions of bytes: tests/fuzz runs them with libFuzzer, replay_test.cpp runs them on
// seeds and known inputs. A function may throw only mw::Error.
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
  size_t factor = 400;            // memory limit: `factor` times the size of the input ...
  size_t fixed_bytes = 12 << 20;  // ... plus `fixed_bytes`
};

// Each reader also has a function NAME_reader(), so that its fuzzer links nothing else.
std::vector<Reader> formats_readers();
std::vector<Reader> orbax_readers();
std::vector<Reader> results_readers();
std::vector<Reader> data_readers();
std::vector<Reader> serve_readers();
std::vector<Reader> experiment_readers();
std::vector<Reader> config_readers();
std::vector<Reader> port_readers();

using test::Scratch;  // static per reader: files remain between calls

std::string fixture(const std::string& path);   // content of a file below tests/fixtures
std::string resource(const std::string& path);  // below resources
// Contents of the fixtures with this file name below `folder`.
std::vector<std::string> fixtures_called(const std::string& folder, const std::string& file);

// Inputs that together have the coverage of all fuzzing of a reader. The file contains, per input, the length in
// decimal, a newline and the bytes. Returns none if there is no file; throws std::runtime_error for a malformed file.
std::filesystem::path corpus_file(const std::string& reader);
std::vector<std::string> corpus(const std::string& reader);
std::string packed(const std::vector<std::string>& inputs);

// The first byte selects one of `n`, the rest is the input.
struct Choice {
  size_t which;
  std::string_view rest;
};
Choice choose(std::string_view bytes, size_t n);

}  // namespace mw::readers
