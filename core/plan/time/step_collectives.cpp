// SPDX-License-Identifier: Apache-2.0
#include "core/plan/time/step_collectives.h"

#include <cmath>

namespace mw::plan {
namespace {

constexpr std::int64_t kFew = 64, kMany = 1 << 20, kBetween = 4097;

Bytes line(Bytes few, Bytes many, std::int64_t count) {
  const double share = static_cast<double>(count - kFew) / static_cast<double>(kMany - kFew);
  const auto a = static_cast<double>(few.value), b = static_cast<double>(many.value);
  return Bytes(std::llround(a + (b - a) * share));
}

bool same_but_bytes(const mesh::Collective& a, const mesh::Collective& b) {
  return a.kind == b.kind && a.axis == b.axis && a.group == b.group && a.cause == b.cause && a.layer == b.layer &&
         a.calls == b.calls;
}

}  // namespace

StepCollectives::StepCollectives(List list)
    : list_(std::move(list)), small_(list_(kFew)), large_(list_(kMany)), current_(small_) {
  is_linear_ = small_.size() == large_.size();
  for (const std::int64_t count : {std::int64_t{1}, kBetween}) {
    const std::vector<mesh::Collective> listed = list_(count);
    is_linear_ = is_linear_ && listed.size() == small_.size();
    if (!is_linear_) return;
    of(count);
    for (size_t i = 0; i < listed.size(); ++i)
      is_linear_ = is_linear_ && same_but_bytes(listed[i], small_[i]) && same_but_bytes(listed[i], large_[i]) &&
                   std::llabs(listed[i].full.value - current_[i].full.value) <= 1 &&
                   std::llabs(listed[i].moved.value - current_[i].moved.value) <= 1;
  }
}

const std::vector<mesh::Collective>& StepCollectives::of(std::int64_t count) {
  if (!is_linear_) return current_ = list_(count);
  for (size_t i = 0; i < current_.size(); ++i) {
    current_[i].full = line(small_[i].full, large_[i].full, count);
    current_[i].moved = line(small_[i].moved, large_[i].moved, count);
  }
  return current_;
}

}  // namespace mw::plan
