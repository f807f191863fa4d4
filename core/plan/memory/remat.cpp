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

bool saves(const Request& request, SavedActivation what) {
  return std::find(request.train.saved.begin(), request.train.saved.end(), what) != request.train.saved.end();
}

}  // namespace

bool recomputes_product(const Request& request, const Product& product) {
  for (const auto& [saved, role] : kProducts)
    if (role == product.role && saves(request, saved)) return false;
  // A norm after the block reads the block's output in its backward.
  if (request.profile.recomputation == StackProfile::Recomputation::whole || request.model.post_norms) return true;
  const bool last = product.role == Role::down_proj || product.role == Role::experts_down;
  return !last && !(request.train.remat == model::Remat::block && product.role == Role::o_proj);
}

bool recomputes_attention(const Request& request) {
  return !saves(request, SavedActivation::attention);
}

double saved_bytes(const Request& request, const LayerKind& kind) {
  if (request.train.offload == Offload::host) return 0;
  double bytes = saves(request, SavedActivation::attention) ? activation_bytes(request) * kind.q() + 4 * kind.heads
                                                            : 0;  // and the sums of its softmax
  for (const auto& [saved, role] : kProducts)
    if (const Product* p = kind.product(role); p && saves(request, saved)) bytes += activation_bytes(request) * p->out;
  return bytes;
}

}  // namespace mw::plan
