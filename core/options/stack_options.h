// SPDX-License-Identifier: Apache-2.0
// The options that each software stack supports, and the defaults of its servers. Plain values; any thread.
#pragma once
#include <vector>

#include "core/model/types.h"

namespace mw::options {

// Options that the stack documents; plans refuse the rest.
struct StackOptions {
  bool fp8_products = false;            // matrix products in fp8
  bool saved_by_name = false;           // remat that keeps chosen activations
  bool offload = false;                 // of the activations that remat keeps, to the host
  bool compile_choice = false;          // runs eagerly or compiled
  bool expert_parallel = false;         // whole experts on devices of the mesh axis "ep"
  std::vector<model::DType> weights{};  // types of a server's weights; empty: bf16 and f32
};
StackOptions stack_options(model::Stack stack);

struct ServerDefaults {  // of settings that an experiment leaves out
  int block_size = 16, max_num_batched_tokens = 2048;
  bool chunked_prefill = true, async_scheduling = false, prefix_cache = true;
};
ServerDefaults server_defaults(model::Stack stack);

}  // namespace mw::options
