// SPDX-License-Identifier: Apache-2.0
#include "core/train/settings.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/optimizer_steps.h"
#include "core/data/dataset/batches.h"
#include "core/engine/transformer/network.h"

namespace mw::train {

double learning_rate(const options::LearningRateSchedule& rate, long step) {
  if (step <= rate.warmup) return rate.peak * static_cast<double>(step) / static_cast<double>(rate.warmup);
  const double span = std::max(1.0, static_cast<double>(rate.steps - rate.warmup));
  const double done = std::clamp(static_cast<double>(step - rate.warmup) / span, 0.0, 1.0);
  double share = 1;  // position between the final rate (0) and the peak (1)
  if (rate.schedule == options::Schedule::cosine) share = 0.5 * (1 + std::cos(std::numbers::pi * done));
  if (rate.schedule == options::Schedule::linear) share = 1 - done;
  return rate.peak * (rate.final_ratio + (1 - rate.final_ratio) * share);
}

double RunBudget::share_left(double seconds_used, std::int64_t tokens_used) const {
  double left = 1;
  if (seconds > 0) left = std::min(left, 1 - seconds_used / seconds);
  if (tokens > 0) left = std::min(left, 1 - static_cast<double>(tokens_used) / static_cast<double>(tokens));
  return std::max(0.0, left);
}

engine::StepOptions step_options(const Settings& settings) {
  return {.remat = settings.remat,
          .loss_chunk = settings.loss_chunk,
          .label_smoothing = static_cast<float>(settings.label_smoothing),
          .dropout_seed = settings.seed};
}

data::BatchOptions batch_options(const Settings& s) {
  return {
      .rows = s.batch, .max_len = s.data.max_len, .packing = s.packing, .order = data::Order::shuffled, .seed = s.seed};
}

void set_steps_from_epochs(Settings& s, const data::ExampleList& train) {
  if (s.epochs <= 0) return;
  const std::int64_t rows = data::rows_of_epoch(train.sizes(), batch_options(s));
  s.rate.steps = static_cast<long>(
      steps_of_epochs(static_cast<double>(rows), s.epochs, {.batch = s.batch, .accumulation = s.accumulation}));
  s.epochs = 0;
}

data::BatchOptions eval_options(const Settings& s) {
  return {.rows = s.batch,
          .max_len = s.data.max_len,
          .packing = data::Packing::none,
          .order = data::Order::as_given,
          .seed = s.seed};
}

}  // namespace mw::train
