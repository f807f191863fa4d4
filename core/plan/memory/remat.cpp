// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/remat.h"

#include <algorithm>
#include <array>

namespace mw::plan {
namespace {

using model::Role;

constexpr std::array<std::pair<SavedActivation, Role>, 7> kProducts{{{SavedActivation::q_proj, Role::q_proj},
                                                                     {SavedActivation::k_proj, Role::k_proj},
                                                                     {SavedActivation::v_proj, Role::v_proj},
                                                                     {SavedActivation::o_proj, Role::o_proj},
                                                                     {SavedActivation::gate_proj, Role::gate_proj},
                                                                     {SavedActivation::up_proj, Role::up_proj},
                                                                     {SavedActivation::down_proj, Role::down_proj}}};

bool saves(const Request& r, SavedActivation what) {
  return std::find(r.train.saved.begin(), r.train.saved.end(), what) != r.train.saved.end();
}

}  // namespace

bool recomputes_product(const Request& r, const Product& p) {
  for (const auto& [saved, role] : kProducts)
    if (role == p.role && saves(r, saved)) return false;
  // A norm after the block reads the block's output in its backward.
  if (r.profile.recomputation == StackProfile::Recomputation::whole || r.model.post_norms) return true;
  const bool last = p.role == Role::down_proj || p.role == Role::experts_down;
  return !last && !(r.train.remat == model::Remat::block && p.role == Role::o_proj);
}

bool recomputes_attention(const Request& r) {
  return !saves(r, SavedActivation::attention);
}

double saved_bytes(const Request& r, const LayerKind& k) {
  if (r.train.offload == Offload::host) return 0;
  double bytes = saves(r, SavedActivation::attention) ? 2 * k.q() + 4 * k.heads : 0;  // and the sums of its softmax
  for (const auto& [saved, role] : kProducts)
    if (const Product* p = k.product(role); p && saves(r, saved)) bytes += 2 * p->out;
  return bytes;
}

}  // namespace mw::plan
