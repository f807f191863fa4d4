// SPDX-License-Identifier: Apache-2.0
// Requests that several tests start from.
#pragma once
#include "core/model/catalogue.h"
#include "core/plan/prediction/predict.h"
#include "tests/shipped.h"

namespace mw::plan {

using test::context;

inline std::vector<model::Role> every_projection() {
  using model::Role;
  return {Role::q_proj, Role::k_proj, Role::v_proj, Role::o_proj, Role::gate_proj, Role::up_proj, Role::down_proj};
}

inline Request request(const char* model, const char* target, model::Stack stack, std::vector<mesh::MeshAxis> axes) {
  Request r;
  r.model = model::catalogue_config(model);
  r.target = context().catalogue.target(target);
  set_stack(r, stack);
  if (const hardware::Price* price = context().catalogue.price(r.target.chip.id)) r.price = *price;
  r.mesh.axes = std::move(axes);
  r.lora.rank = 64;
  r.targets = every_projection();
  r.lengths.max_len = 4096;
  r.train.remat = model::Remat::layer;
  r.train.steps = 100;
  return r;
}

inline Request lora_31b_v5p(int fsdp = 1, int tp = 4) {
  Request r = request("gemma4-31b", "v5p-8", model::Stack::tunix, {{"fsdp", fsdp}, {"tp", tp}});
  r.train.accumulation = 8;
  r.train.batch = fsdp;
  return r;
}

}  // namespace mw::plan
