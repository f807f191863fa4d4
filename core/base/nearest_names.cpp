// SPDX-License-Identifier: Apache-2.0
#include "core/base/nearest_names.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/base/text.h"

namespace mw {
namespace {

// Bit-parallel Levenshtein distance from one short text to others (Myers 1999, in Hyyrö's form); it dominates the cost
// of rejecting an unknown key.
class EditDistance {
 public:
  static constexpr size_t kLongest = 64;  // characters of `text`

  explicit EditDistance(std::string_view text) : size_(text.size()) {
    for (size_t i = 0; i < size_; ++i) where_[static_cast<unsigned char>(text[i])] |= std::uint64_t{1} << i;
  }

  size_t to(std::string_view other) const {
    if (size_ == 0) return other.size();
    const std::uint64_t last = std::uint64_t{1} << (size_ - 1);
    std::uint64_t more = ~std::uint64_t{0}, less = 0;  // rows that are one more, one less than the previous row
    size_t distance = size_;
    for (const char c : other) {
      const std::uint64_t same = where_[static_cast<unsigned char>(c)];
      const std::uint64_t diagonal = (((same & more) + more) ^ more) | same | less;
      std::uint64_t right_more = less | ~(diagonal | more), right_less = diagonal & more;
      if (right_more & last) ++distance;
      if (right_less & last) --distance;
      right_more = (right_more << 1) | 1;
      right_less <<= 1;
      more = right_less | ~(diagonal | right_more);
      less = right_more & diagonal;
    }
    return distance;
  }

 private:
  size_t size_;
  std::array<std::uint64_t, 256> where_{};  // bit i is set if character i of the text has this value
};

}  // namespace

std::vector<std::string> nearest_names(std::string_view wrong, const std::vector<std::string>& names, size_t count) {
  const std::string_view head = wrong.substr(0, EditDistance::kLongest);  // names are short
  const EditDistance distance(head);
  std::vector<std::pair<size_t, size_t>> order, best;  // {lower bound of the distance, index}; {distance, index}
  order.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_prefix = !head.empty() && names[i].starts_with(head);
    const size_t a = head.size(), b = names[i].size();
    order.emplace_back(is_prefix ? 0 : std::max(a, b) - std::min(a, b), i);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [least, i] : order) {
    if (best.size() >= count && (count == 0 || least > best[count - 1].first)) break;
    const bool is_prefix = !head.empty() && names[i].starts_with(head);
    const std::pair found{is_prefix ? 0 : distance.to(names[i]), i};
    best.insert(std::upper_bound(best.begin(), best.end(), found), found);
  }
  std::vector<std::string> out;
  for (size_t i = 0; i < std::min(count, best.size()); ++i) out.push_back(names[best[i].second]);
  return out;
}

namespace {

// Equal, or one letter replaced, added, missing, or swapped with the next one.
bool differs_by_one_edit(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  size_t same = 0;
  while (same < a.size() && a[same] == b[same]) ++same;
  a.remove_prefix(same), b.remove_prefix(same);
  if (a.empty()) return true;
  if (a.size() < b.size()) return a == b.substr(1);
  const bool exchanged = a.size() > 1 && a[0] == b[1] && a[1] == b[0] && a.substr(2) == b.substr(2);
  return exchanged || a.substr(1) == b.substr(1);
}

std::string letters_of(std::string text) {
  std::sort(text.begin(), text.end());
  text.erase(std::unique(text.begin(), text.end()), text.end());
  return text;
}

}  // namespace

bool is_likely_typo(std::string_view text, std::string_view name) {
  constexpr size_t kShort = 3;  // shorter names are one edit away from too many others
  const std::string a = lower_case(text), b = lower_case(name);
  if (a == b) return true;
  if (std::min(a.size(), b.size()) < kShort) return letters_of(a) == letters_of(b);
  return differs_by_one_edit(a, b);
}

std::string nearest_names_text(std::string_view wrong, const std::vector<std::string>& names, size_t count) {
  const std::vector<std::string> best = nearest_names(wrong, names, count);
  std::string text;
  for (size_t i = 0; i < best.size(); ++i) text += (i == 0 ? "" : i + 1 == best.size() ? " or " : ", ") + best[i];
  return text;
}

}  // namespace mw
