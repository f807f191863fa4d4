// SPDX-License-Identifier: Apache-2.0
#include "core/base/nearest.h"

#include <algorithm>
#include <numeric>

namespace mw {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> nearest(std::string_view wrong, std::vector<std::string> names, size_t count) {
  const std::string_view head = wrong.substr(0, 64);   // the distance is quadratic; names are short
  std::vector<std::pair<size_t, size_t>> order, best;  // by the least that the distance can be; by what it is
  for (size_t i = 0; i < names.size(); ++i) {
    const bool begun = !head.empty() && names[i].starts_with(head);
    const size_t a = head.size(), b = names[i].size();
    order.emplace_back(begun ? 0 : std::max(a, b) - std::min(a, b), i);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [least, i] : order) {
    if (best.size() >= count && (count == 0 || least > best[count - 1].first)) break;  // nor any after it
    const bool begun = !head.empty() && names[i].starts_with(head);
    const std::pair found{begun ? 0 : edit_distance(head, names[i]), i};
    best.insert(std::upper_bound(best.begin(), best.end(), found), found);
  }
  std::vector<std::string> out;
  for (size_t i = 0; i < std::min(count, best.size()); ++i) out.push_back(std::move(names[best[i].second]));
  return out;
}

std::string nearest_text(std::string_view wrong, std::vector<std::string> names, size_t count) {
  const std::vector<std::string> best = nearest(wrong, std::move(names), count);
  std::string text;
  for (size_t i = 0; i < best.size(); ++i) text += (i == 0 ? "" : i + 1 == best.size() ? " or " : ", ") + best[i];
  return text;
}

}  // namespace mw
