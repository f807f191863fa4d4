// SPDX-License-Identifier: Apache-2.0
#include "core/plan/time/inference.h"

#include <algorithm>
#include <cmath>

#include "core/plan/memory/device_memory.h"

namespace mw::plan {

RolloutShape rollout_shape(const Request& r) {
  const RolloutWork& w = r.rollout;
  RolloutShape out{.rows = static_cast<double>(w.batch)};
  out.cache = w.cache_len > 0 ? w.cache_len : w.prompt + w.new_tokens;
  // Without window caches every step reads the whole cache, including unused slots.
  const bool whole = r.profile.attention == StackProfile::Attention::materialised;
  out.context = whole ? out.cache : w.prompt + w.new_tokens / 2.0;
  return out;
}

LoadedServer loaded_server(const ServeStepModel& model, const ServeWork& s) {
  LoadedServer out;
  out.steady = steady_state(
      model, s, {.concurrency = std::max(1, s.max_num_seqs), .input_len = s.input_len, .output_len = s.output_len});
  const double rows = std::floor(out.steady.running), context = s.input_len + s.output_len / 2.0;
  const double window = model.window() > 0 ? std::min<double>(context, model.window()) : context;
  out.decoding = {
      .decoding = static_cast<int>(rows), .read_tokens = rows * context, .read_window_tokens = rows * window};
  return out;
}

std::int64_t longest_request(const LocalModel& model, double cache) {
  std::int64_t held = 0;
  for (std::int64_t above = std::int64_t{model.request->serve.max_model_len} + 1; above - held > 1;) {
    const std::int64_t middle = held + (above - held) / 2;
    const auto tokens = static_cast<double>(middle);
    (kv_bytes_per_token(model, tokens) * tokens <= cache ? held : above) = middle;
  }
  return held;
}

}  // namespace mw::plan
