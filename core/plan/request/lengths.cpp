// SPDX-License-Identifier: Apache-2.0
#include "core/plan/request/lengths.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace mw::plan {
namespace {

constexpr double kPackedFill = 0.97;  // of rows filled longest first, where only the mean is known

// Mean of the longest of n draws from the histogram.
double expected_longest(const std::vector<std::pair<int, std::int64_t>>& histogram, double rows, double n) {
  double below = 0, sum = 0;
  for (const auto& [tokens, count] : histogram) {
    const double upto = below + static_cast<double>(count);
    sum += tokens * (std::pow(upto / rows, n) - std::pow(below / rows, n));
    below = upto;
  }
  return sum;
}

// The mean of the density proportional to exp(-x d) on [0, 1].
double mean_of_decay(double d) {
  return std::abs(d) < 1e-3 ? 0.5 - d / 12 : 1 / d - 1 / std::expm1(d);
}

constexpr int kSlices = 256;

// Lengths at the shares `share_at`(0 to 1) of all rows, if only the mean is known: of the distribution on [0, longest]
// with the most entropy.
template <class Share>
std::array<double, kSlices> likely_lengths(double mean, double longest, const Share& share_at) {
  double low = -500, high = 500;  // of the decay; the mean falls with it
  for (int i = 0; i < 60; ++i) (mean_of_decay((low + high) / 2) * longest > mean ? low : high) = (low + high) / 2;
  const double d = (low + high) / 2;
  const auto quantile = [&](double share) {
    return std::abs(d) < 1e-6 ? share : -std::log1p(share * std::expm1(-d)) / d;
  };
  std::array<double, kSlices> lengths;
  for (int i = 0; i < kSlices; ++i) lengths[static_cast<size_t>(i)] = longest * quantile(share_at((i + 0.5) / kSlices));
  return lengths;
}

// Mean of the longest of n draws from them.
double expected_longest(double mean, double longest, double n) {
  if (mean >= longest || n <= 1) return mean;
  double sum = 0;
  for (const double length : likely_lengths(mean, longest, [&](double share) { return std::pow(share, 1 / n); }))
    sum += length;
  return std::clamp(sum / kSlices, mean, longest);
}

// The length of the example of a token, in the mean over tokens.
double attended_length(const std::vector<std::pair<int, std::int64_t>>& histogram, double mean, double longest) {
  double tokens = 0, pairs = 0;
  const auto add = [&](double length, double count) { tokens += length * count, pairs += length * length * count; };
  for (const auto& [length, count] : histogram) add(length, static_cast<double>(count));
  if (histogram.empty() && mean < longest)
    for (const double length : likely_lengths(mean, longest, [](double share) { return share; })) add(length, 1);
  return tokens > 0 ? pairs / tokens : mean;
}

}  // namespace

std::int64_t pack_count(const std::vector<std::pair<int, std::int64_t>>& histogram, int max_len) {
  std::map<int, std::int64_t> room;  // free tokens -> packed rows with so many
  std::int64_t rows = 0;
  for (auto at = histogram.rbegin(); at != histogram.rend(); ++at) {
    const int tokens = at->first;
    std::int64_t left = tokens > 0 && tokens <= max_len ? at->second : 0;
    while (left > 0) {
      auto best = room.lower_bound(tokens);
      if (best == room.end()) {  // as many new rows as these fill
        const std::int64_t each = std::max(1, max_len / tokens), made = std::max<std::int64_t>(1, left / each);
        const std::int64_t put = std::min(left, each);
        rows += made;
        room[max_len - static_cast<int>(put) * tokens] += made;
        left -= made * put;
        continue;
      }
      const int space = best->first;
      const std::int64_t used = std::min(left, best->second);
      if ((best->second -= used) == 0) room.erase(best);
      room[space - tokens] += used;
      left -= used;
    }
  }
  return rows;
}

RowStatistics row_statistics(const Lengths& lengths, double rows_per_device, double devices) {
  RowStatistics f;
  double tokens = 0;
  std::vector<std::pair<int, std::int64_t>> kept;
  for (const auto& [length, count] : lengths.histogram) {
    if (length > lengths.max_len || count <= 0) continue;
    kept.emplace_back(length, count);
    f.rows += static_cast<double>(count);
    tokens += static_cast<double>(length) * static_cast<double>(count);
  }
  if (kept.empty()) f.rows = static_cast<double>(lengths.count);
  f.mean = !kept.empty()      ? tokens / f.rows
           : lengths.mean > 0 ? std::min<double>(lengths.mean, lengths.max_len)
                              : lengths.max_len;
  f.longest = lengths.max_len;
  const double all = f.rows * f.mean;
  f.packed_rows = lengths.packed_rows > 0
                      ? static_cast<double>(lengths.packed_rows)
                      : std::ceil(all / (lengths.max_len * (f.mean >= lengths.max_len ? 1 : kPackedFill)));
  f.batches_rows = f.rows;
  f.computed = lengths.max_len;
  f.real = f.mean;
  f.slowest = f.computed;
  const auto longest_of = [&](double rows) {
    return kept.empty() ? expected_longest(f.mean, f.longest, rows) : expected_longest(kept, f.rows, rows);
  };
  const double rows = std::max(1.0, rows_per_device);
  if (lengths.rows == RowLayout::ragged) {
    f.computed = longest_of(rows);
    f.slowest = longest_of(rows * std::max(1.0, devices));
  }
  if (lengths.rows == RowLayout::packed) {
    f.batches_rows = f.packed_rows;
    f.real = f.packed_rows > 0 ? all / f.packed_rows : std::min(f.longest, f.longest * kPackedFill);
  }
  f.real = std::min(f.real, f.computed);
  f.attended = f.slowest;
  if (lengths.computes_padding) return f;
  // The sums of several rows differ less between devices than single rows do.
  const double spread = lengths.rows == RowLayout::packed ? 0 : longest_of(std::max(1.0, devices)) - f.mean;
  f.computed = f.real;
  f.slowest = f.real + spread / std::sqrt(rows);
  f.attended = attended_length(kept, f.mean, f.longest);
  return f;
}

}  // namespace mw::plan
