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
    : list_(std::move(list)), few_(list_(kFew)), many_(list_(kMany)), now_(few_) {
  straight_ = few_.size() == many_.size();
  for (const std::int64_t count : {std::int64_t{1}, kBetween}) {
    const std::vector<mesh::Collective> listed = list_(count);
    straight_ = straight_ && listed.size() == few_.size();
    if (!straight_) return;
    of(count);
    for (size_t i = 0; i < listed.size(); ++i)
      straight_ = straight_ && same_but_bytes(listed[i], few_[i]) && same_but_bytes(listed[i], many_[i]) &&
                  std::llabs(listed[i].full.value - now_[i].full.value) <= 1 &&
                  std::llabs(listed[i].moved.value - now_[i].moved.value) <= 1;
  }
}

const std::vector<mesh::Collective>& StepCollectives::of(std::int64_t count) {
  if (!straight_) return now_ = list_(count);
  for (size_t i = 0; i < now_.size(); ++i) {
    now_[i].full = line(few_[i].full, many_[i].full, count);
    now_[i].moved = line(few_[i].moved, many_[i].moved, count);
  }
  return now_;
}

}  // namespace mw::plan
