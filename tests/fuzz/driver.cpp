// SPDX-License-Identifier: GPL-3.0-or-later
// libFuzzer's side of the reader MW_READER: --list prints its name and its longest input, --seeds=FOLDER writes its
// seeds, its corpus and a dictionary of what the seeds quote (FOLDER.dict), --pack=FOLDER makes the inputs there that
// corpus, then ends. An input that makes a reader hold more memory at once than its bound, or throw what is no
// mw::Error, ends the process as a crash.
#include <sanitizer/allocator_interface.h>
#include <sanitizer/common_interface_defs.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "tests/readers/reader.h"

namespace mw::readers {
Reader MW_READER();
}

namespace {

using mw::readers::Reader;

const Reader chosen = mw::readers::MW_READER();
thread_local bool counting = false;  // the readers use no other thread
std::int64_t held = 0, most = 0;

void on_malloc(const volatile void*, size_t size) {
  if (!counting) return;
  held += static_cast<std::int64_t>(size);
  most = std::max(most, held);
}

void on_free(const volatile void* at) {
  if (!counting || !at) return;
  held -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(const_cast<const void*>(at)));
}

std::set<std::string> quoted(const std::string& text) {
  std::set<std::string> words;
  for (size_t at = 0; (at = text.find('"', at)) != std::string::npos;) {
    const size_t end = text.find('"', at + 1);
    if (end == std::string::npos) break;
    const std::string word = text.substr(at + 1, end - at - 1);
    const bool plain = !word.empty() && word.size() <= 40 &&
                       std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c < 127 && c != '\\'; });
    if (plain) words.insert(word);
    at = end + 1;
  }
  return words;
}

void write_seeds(const Reader& reader, const std::string& folder) {
  std::set<std::string> words;
  int n = 0;
  for (const std::string& input : mw::readers::corpus(reader.name))
    std::ofstream(folder + "/corpus-" + std::to_string(n++), std::ios::binary) << input;
  n = 0;
  for (const std::string& seed : reader.seeds()) {
    std::ofstream(folder + "/seed-" + std::to_string(n++), std::ios::binary) << seed.substr(0, reader.max_len);
    words.merge(quoted(seed));
  }
  std::ofstream dictionary(folder + ".dict");
  dictionary << "# what the seeds quote\n";
  size_t left = 400;
  for (const std::string& word : words)
    if (left-- > 0)
      dictionary << "\"\\\"" << word << "\\\"\"\n";
    else
      break;
}

void pack(const Reader& reader, const std::string& folder) {
  std::vector<std::string> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) inputs.push_back(mw::read_file(entry.path()));
  std::sort(inputs.begin(), inputs.end());
  mw::write_file_atomically(mw::readers::corpus_file(reader.name), mw::readers::packed(inputs));
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i) {
    const std::string a = (*argv)[i];
    if (a == "--list") {
      std::printf("%s %zu\n", chosen.name.c_str(), chosen.max_len);
      std::exit(0);
    }
    if (a.starts_with("--seeds=")) {
      write_seeds(chosen, a.substr(8));
      std::exit(0);
    }
    if (a.starts_with("--pack=")) {
      pack(chosen, a.substr(7));
      std::exit(0);
    }
  }
  try {
    chosen.read("");  // what it prepares once is not the first input's
  } catch (const mw::Error&) {
  }
  __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, size_t size) {
  held = most = 0;
  counting = true;
  try {
    chosen.read({reinterpret_cast<const char*>(data), size});
  } catch (const mw::Error&) {
  }
  counting = false;
  if (most > static_cast<std::int64_t>(chosen.fixed_bytes + chosen.factor * size)) {
    std::fprintf(stderr, "%s held %lld bytes at once for an input of %zu\n", chosen.name.c_str(),
                 static_cast<long long>(most), size);
    std::abort();
  }
  return 0;
}
