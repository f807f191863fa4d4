// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/slices.h"

#include <algorithm>
#include <numeric>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace mw::hardware {
namespace {

std::optional<int> parse_positive(std::string_view text) {
  const auto value = parse_number<int>(text);
  return value && *value > 0 ? value : std::nullopt;
}

std::optional<std::vector<int>> parse_grid(std::string_view text) {
  std::vector<int> sides;
  while (!text.empty()) {
    const size_t x = text.find('x');
    const auto side = parse_positive(text.substr(0, x));
    if (!side || *side > 1024) return {};
    sides.push_back(*side);
    text = x == std::string_view::npos ? std::string_view() : text.substr(x + 1);
  }
  return sides;
}

std::string nearest_slices(const SliceFamily& family, int wanted) {
  std::vector<int> all;
  for (const Slice& s : family.slices) all.push_back(s.suffix);
  std::stable_sort(all.begin(), all.end(), [&](int a, int b) { return std::abs(a - wanted) < std::abs(b - wanted); });
  all.resize(std::min<size_t>(all.size(), 3));
  std::sort(all.begin(), all.end());
  std::string text;
  for (size_t i = 0; i < all.size(); ++i)
    text += (i == 0 ? "" : i + 1 == all.size() ? " or " : ", ") + family.prefixes.front() + std::to_string(all[i]);
  return text;
}

std::string suffix_unit(const SliceFamily& f) {
  return "the suffix counts " + f.counts + (f.per_chip > 1 ? ", " + std::to_string(f.per_chip) + " per chip" : "");
}

[[noreturn]] void throw_unknown_slice(const SliceFamily& family, std::string_view id, int wanted) {
  throw Error("TARGET-SLICE", "there is no slice of this size; " + suffix_unit(family),
              {.place = "target.id",
               .found = std::string(id.substr(0, 80)),
               .expected = nearest_slices(family, wanted),
               .fix = "choose an offered slice, or give the grid, for example " + family.prefixes.front() +
                      shape_text(family.slices.back().shape)});
}

NamedSlice slice_of_grid(const SliceFamily& family, std::string_view id, const std::vector<int>& shape) {
  const size_t sides = family.slices.front().shape.size();
  if (shape.size() != sides)
    throw Error("TARGET-SLICE", "a slice of these chips has " + counted(sides, "dimension"),
                {.place = "target.id",
                 .found = std::string(id.substr(0, 80)),
                 .expected = family.prefixes.front() + shape_text(family.slices.back().shape)});
  for (const Slice& s : family.slices)
    if (s.shape == shape) return {family.prefixes.front() + std::to_string(s.suffix), shape};
  return {family.prefixes.front() + shape_text(shape), shape};
}

}  // namespace

int chip_count(const std::vector<int>& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>());
}

std::string shape_text(const std::vector<int>& shape) {
  return joined(shape, "x", [](int side) { return std::to_string(side); });
}

std::vector<bool> wrapped_dimensions(const WrapRule& rule, const std::vector<int>& shape) {
  std::vector<bool> out(shape.size(), false);
  const bool cubes =
      std::all_of(shape.begin(), shape.end(), [&](int s) { return rule.size > 0 && s % rule.size == 0; });
  for (size_t i = 0; i < shape.size(); ++i)
    out[i] = rule.kind == WrapRule::Kind::side ? shape[i] == rule.size : rule.kind == WrapRule::Kind::cubes && cubes;
  return out;
}

std::string describe_slice(const SliceFamily& family, const std::string& id, const std::vector<int>& shape) {
  const std::vector<bool> rings = wrapped_dimensions(family.wrap, shape);
  std::string sides;
  for (size_t i = 0; i < shape.size(); ++i)
    if (rings[i]) sides += (sides.empty() ? "" : ", ") + std::to_string(shape[i]);
  const auto closing = std::count(rings.begin(), rings.end(), true);
  const std::string wrap = closing == 0 ? "no wraparound links"
                           : closing == static_cast<long>(shape.size())
                               ? "wraparound links in every dimension"
                               : "wraparound links only in the dimension of " + sides;
  return id + ": " + suffix_unit(family) + "; " + counted(chip_count(shape), "chip") + ", " + shape_text(shape) + ", " +
         wrap;
}

bool is_of_family(const SliceFamily& family, std::string_view id) {
  const auto named = [&](const Slice& s) {
    return std::find(s.machines.begin(), s.machines.end(), id) != s.machines.end();
  };
  return std::any_of(family.slices.begin(), family.slices.end(), named) ||
         std::any_of(family.prefixes.begin(), family.prefixes.end(),
                     [&](const std::string& p) { return id.starts_with(p) && id.size() > p.size(); });
}

std::optional<NamedSlice> find_slice(const SliceFamily& family, std::string_view id) {
  for (const Slice& s : family.slices)
    if (std::find(s.machines.begin(), s.machines.end(), id) != s.machines.end())
      return NamedSlice{family.prefixes.front() + std::to_string(s.suffix), s.shape};
  for (const std::string& prefix : family.prefixes) {
    if (!id.starts_with(prefix) || id.size() == prefix.size()) continue;
    const std::string_view suffix = id.substr(prefix.size());
    if (const auto number = parse_positive(suffix)) {
      for (const Slice& s : family.slices)
        if (s.suffix == *number) return NamedSlice{family.prefixes.front() + std::to_string(s.suffix), s.shape};
      throw_unknown_slice(family, id, *number);
    }
    if (const auto shape = parse_grid(suffix)) return slice_of_grid(family, id, *shape);
    throw_unknown_slice(family, id, 0);
  }
  return std::nullopt;
}

}  // namespace mw::hardware
