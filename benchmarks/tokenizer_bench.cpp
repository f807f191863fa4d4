// SPDX-License-Identifier: GPL-3.0-or-later
// The Meshwright side of scripts/tokenizer-peer.sh: encodes the lines of a file on some threads, and prints seconds,
// bytes, tokens and a hash of all ids as JSON.
//   mw_tokenizer_bench TOKENIZER FILE [threads] [rounds]
#include <cstdio>
#include <fstream>

#include "core/base/json.h"
#include "core/base/ordered_work.h"
#include "core/base/sha256.h"
#include "core/base/units.h"
#include "core/data/tokenizer/tokenizer.h"

namespace mw {
namespace {

constexpr size_t kLinesOfChunk = 512;

using Ids = std::vector<std::vector<int>>;

Ids encode(const data::Tokenizer& tokenizer, const std::vector<std::string>& lines, int threads) {
  OrderedWork<Ids> work(threads > 1 ? threads : 0);
  for (size_t begin = 0; begin < lines.size(); begin += kLinesOfChunk)
    work.give([&, begin] {
      Ids ids;
      for (size_t i = begin; i < std::min(lines.size(), begin + kLinesOfChunk); ++i)
        ids.push_back(tokenizer.encode(lines[i]));
      return ids;
    });
  Ids all;
  while (work.pending() > 0)
    for (auto& ids : work.take()) all.push_back(std::move(ids));
  return all;
}

int run(int argc, char** argv) {
  if (argc < 3) throw std::runtime_error("usage: mw_tokenizer_bench TOKENIZER FILE [threads] [rounds]");
  const auto tokenizer = data::load_tokenizer(argv[1]);
  std::vector<std::string> lines;
  std::ifstream file(argv[2]);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  const int threads = argc > 3 ? std::stoi(argv[3]) : 2, rounds = argc > 4 ? std::stoi(argv[4]) : 3;
  Ids ids;
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    ids.clear();
    const auto start = std::chrono::steady_clock::now();
    ids = encode(*tokenizer, lines, threads);
    const double seconds = seconds_since(start);
    best = round == 0 ? seconds : std::min(best, seconds);
  }
  Sha256 sum;
  std::uint64_t bytes = 0, tokens = 0;
  for (const std::string& line : lines) bytes += line.size();
  for (const auto& line : ids) {
    tokens += line.size();
    std::string text;
    for (const int id : line) text += std::to_string(id) + " ";
    sum.add(text + "\n");
  }
  std::printf("%s\n",
              Json{{"seconds", best}, {"bytes", bytes}, {"tokens", tokens}, {"ids", hex(sum.finish())}}.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace mw

int main(int argc, char** argv) {
  try {
    return mw::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
