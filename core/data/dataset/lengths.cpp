// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/lengths.h"

#include <algorithm>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"

namespace mw::data {
namespace {

constexpr std::uint64_t kLargestFile = 256u << 20;
constexpr std::int64_t kMostTokens = 1 << 24, kMostRows = 10'000'000'000;  // their product fits into 64 bits
constexpr const char* kExpected = "a number of tokens (at least 1) and a number of rows";

Error refused(const std::filesystem::path& file, std::string place, std::string found, std::string expected) {
  return Error("DATA-LENGTHS", "invalid length histogram",
               {.file = file.string(),
                .place = std::move(place),
                .found = std::move(found),
                .expected = std::move(expected),
                .fix = "write one pair per length, e.g. {\"lengths\": [[412, 3]]} or CSV lines \"tokens,rows\""});
}

struct Counter {
  LengthCounts lengths;
  std::int64_t rows = 0;
  // False if a number is out of range.
  bool add(std::int64_t tokens, std::int64_t more) {
    if (tokens < 1 || tokens > kMostTokens || more < 0 || more > kMostRows - rows) return false;
    if (more > 0) lengths[static_cast<int>(tokens)] += more;
    rows += more;
    return true;
  }
};

LengthCounts from_json(const std::string& text, const std::filesystem::path& file) {
  const Json json = parse_json(text, file.string());
  const auto found = json.is_object() ? json.find("lengths") : json.end();
  if (!json.is_object() || found == json.end() || !found->is_array())
    throw refused(file, "", json_excerpt(json), "an object with \"lengths\": [[tokens, rows], ...]");
  Counter counter;
  for (size_t i = 0; i < found->size(); ++i) {
    const Json& pair = (*found)[i];
    const bool two = pair.is_array() && pair.size() == 2 && pair[0].is_number_integer() && pair[1].is_number_integer();
    if (!two || !counter.add(pair[0].get<std::int64_t>(), pair[1].get<std::int64_t>()))
      throw refused(file, "lengths[" + std::to_string(i) + "]", json_excerpt(pair), kExpected);
  }
  return std::move(counter.lengths);
}

LengthCounts from_csv(std::string_view text, const std::filesystem::path& file) {
  Counter counter;
  bool first = true;
  for (long line = 1; !text.empty(); ++line) {
    const std::string_view row = trim(take_line(text));
    if (row.empty()) continue;
    const size_t comma = row.find(',');
    const bool named = first && comma != std::string_view::npos && std::isalpha(static_cast<unsigned char>(row[0]));
    first = false;
    if (named) continue;
    const auto tokens = parse_number<std::int64_t>(trim(row.substr(0, comma)));
    const auto rows =
        comma == std::string_view::npos ? std::nullopt : parse_number<std::int64_t>(trim(row.substr(comma + 1)));
    if (!tokens || !rows || !counter.add(*tokens, *rows))
      throw refused(file, "line " + std::to_string(line), excerpt(row, 40), kExpected);
  }
  return std::move(counter.lengths);
}

}  // namespace

LengthCounts read_lengths(const std::filesystem::path& file) {
  const std::string text = read_text(file, kLargestFile);
  const std::string_view start = trim(std::string_view(text).substr(0, 4096));
  const bool json = start.starts_with('{') || start.starts_with('[');
  LengthCounts lengths = json ? from_json(text, file) : from_csv(text, file);
  if (lengths.empty()) throw refused(file, "", "no rows", "at least one row");
  return lengths;
}

void write_lengths(const std::filesystem::path& file, const LengthCounts& lengths, const std::string& source) {
  if (file.extension() == ".csv") {
    std::string text = "tokens,rows\n";
    for (const auto& [tokens, rows] : lengths) text += std::to_string(tokens) + "," + std::to_string(rows) + "\n";
    return write_file_atomically(file, text);
  }
  Json pairs = Json::array();
  for (const auto& [tokens, rows] : lengths) pairs.push_back(Json::array({tokens, rows}));
  const Json json{{"source", valid_utf8(source)}, {"lengths", std::move(pairs)}};
  write_file_atomically(file, json.dump() + "\n");
}

LengthStats length_stats(const LengthCounts& lengths) {
  LengthStats s;
  for (const auto& [tokens, rows] : lengths) {
    s.rows += rows;
    s.tokens += tokens * rows;
    s.longest = std::max(s.longest, tokens);
  }
  if (s.rows == 0) return s;
  s.mean = static_cast<double>(s.tokens) / static_cast<double>(s.rows);
  const auto at = [&](int percent) {
    std::int64_t seen = 0;
    for (const auto& [tokens, rows] : lengths)
      if ((seen += rows) * 100 >= s.rows * percent) return tokens;
    return s.longest;
  };
  s.p50 = at(50);
  s.p95 = at(95);
  s.p99 = at(99);
  return s;
}

LengthBins length_bins(const LengthCounts& lengths, int upto, int most_bins) {
  LengthBins bins;
  // Widths 1, 2, 5, 10, 20, 50 ...
  for (int base = 1; static_cast<std::int64_t>(bins.width) * most_bins < upto; base *= 10)
    for (const int step : {1, 2, 5}) {
      bins.width = base * step;
      if (static_cast<std::int64_t>(bins.width) * most_bins >= upto) break;
    }
  bins.rows.assign(static_cast<size_t>((upto + bins.width - 1) / bins.width), 0);
  for (const auto& [tokens, rows] : lengths) {
    const auto bin = static_cast<size_t>(tokens / bins.width);
    (bin < bins.rows.size() ? bins.rows[bin] : bins.beyond) += rows;
  }
  return bins;
}

std::vector<ExampleSize> example_sizes(const LengthCounts& lengths, int max_len, options::Overlong overlong,
                                       std::int64_t most) {
  std::vector<ExampleSize> sizes;
  if (const std::int64_t rows = length_stats(lengths).rows; rows > most)
    throw Error(
        "DATA-LENGTHS", "the histogram has too many rows",
        {.place = "data.lengths", .found = counted(rows, "row"), .expected = "at most " + std::to_string(most)});
  for (const auto& [tokens, rows] : lengths)
    if (tokens <= max_len || overlong == options::Overlong::truncate)
      sizes.insert(sizes.end(), static_cast<size_t>(rows), {std::min(tokens, max_len), 0});
  return sizes;
}

}  // namespace mw::data
