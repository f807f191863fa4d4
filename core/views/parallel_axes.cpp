// SPDX-License-Identifier: Apache-2.0
#include "core/views/parallel_axes.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/text.h"
#include "core/base/units.h"

namespace mw::views {
namespace {

constexpr size_t kMostSettings = 10;  // more axes would be too narrow to read
constexpr double kLogFactor = 20;
constexpr size_t kMostStops = 6;

using Numbers = std::vector<std::optional<double>>;  // by run

void place_numbers(const Numbers& numbers, ParallelAxis& axis) {
  std::set<double> distinct;
  for (const auto& n : numbers)
    if (n) distinct.insert(*n);
  if (distinct.empty()) return axis.places.resize(numbers.size());
  const double low = *distinct.begin(), high = *distinct.rbegin();
  axis.is_log = low > 0 && high / low >= kLogFactor;
  const auto place = [&](double value) {
    if (low == high) return 0.5;
    return axis.is_log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  };
  for (const auto& n : numbers) axis.places.push_back(n ? std::optional(place(*n)) : std::nullopt);
  if (distinct.size() > kMostStops) distinct = {low, axis.is_log ? std::sqrt(low * high) : (low + high) / 2, high};
  for (const double value : distinct) axis.stops.push_back({place(value), number_text(value, 3)});
}

void place_texts(const std::vector<std::string>& texts, ParallelAxis& axis) {
  std::vector<std::string> distinct;
  for (const std::string& text : texts)
    if (std::find(distinct.begin(), distinct.end(), text) == distinct.end()) distinct.push_back(text);
  const auto place = [&](size_t i) {
    return distinct.size() < 2 ? 0.5 : static_cast<double>(i) / static_cast<double>(distinct.size() - 1);
  };
  for (size_t i = 0; i < distinct.size(); ++i)
    axis.stops.push_back({place(i), distinct[i].empty() ? "-" : distinct[i]});
  for (const std::string& text : texts)
    axis.places.emplace_back(
        place(static_cast<size_t>(std::find(distinct.begin(), distinct.end(), text) - distinct.begin())));
}

// The settings that some run has with another value than the first one.
std::vector<store::SettingChange> differing(const std::vector<ParallelRun>& runs) {
  std::vector<store::SettingChange> out;
  for (const ParallelRun& run : runs)
    for (store::SettingChange& change : store::setting_changes(runs.front().settings, run.settings))
      if (std::none_of(out.begin(), out.end(), [&](const auto& known) { return known.key == change.key; }))
        out.push_back(std::move(change));
  return out;
}

ParallelAxis setting_axis(const std::vector<ParallelRun>& runs, const store::SettingChange& setting) {
  ParallelAxis axis{.label = setting.label};
  std::vector<std::string> texts;
  Numbers numbers;
  for (const ParallelRun& run : runs) {
    const auto at = run.settings.find(setting.key);
    texts.push_back(at == run.settings.end() ? std::string() : at->second);
    numbers.push_back(parse_number<double>(texts.back()));
  }
  const bool are_numbers =
      std::all_of(numbers.begin(), numbers.end(), [](const auto& n) { return n && std::isfinite(*n); });
  if (are_numbers)
    place_numbers(numbers, axis);
  else
    place_texts(texts, axis);
  return axis;
}

}  // namespace

std::vector<ParallelAxis> parallel_axes(const std::vector<ParallelRun>& runs) {
  std::vector<ParallelAxis> axes;
  if (runs.empty()) return axes;
  for (const store::SettingChange& setting : differing(runs)) {
    if (axes.size() == kMostSettings) break;
    axes.push_back(setting_axis(runs, setting));
  }
  for (size_t r = 0; r < runs.front().results.size(); ++r) {
    const ParallelResult& first = runs.front().results[r];
    ParallelAxis axis{.label = first.label, .unit = first.unit, .is_result = true};
    Numbers numbers;
    for (const ParallelRun& run : runs) {
      const auto& value = run.results.at(r).value;
      numbers.push_back(value && std::isfinite(*value) ? value : std::nullopt);
    }
    if (std::none_of(numbers.begin(), numbers.end(), [](const auto& n) { return n.has_value(); })) continue;
    place_numbers(numbers, axis);
    axes.push_back(std::move(axis));
  }
  return axes;
}

}  // namespace mw::views
