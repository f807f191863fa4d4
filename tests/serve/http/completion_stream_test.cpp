// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/http/completion_stream.h"

#include <gtest/gtest.h>

#include "core/data/tokenizer/tokenizer.h"
#include "tests/serve/scheduling/scripted_executor.h"

namespace mw::serve {
namespace {

// Each step waits for release().
class HeldExecutor : public ScriptedExecutor {
 public:
  StepResult run(const Step& step, const Scheduler& scheduler) override {
    running_ = true;
    running_.notify_one();
    released_.wait(false);
    return ScriptedExecutor::run(step, scheduler);
  }
  void await_step() { running_.wait(false); }
  void release() {
    released_ = true;
    released_.notify_one();
  }

 private:
  std::atomic<bool> running_{false}, released_{false};
};

// A server that stops destroys its streams and metrics before the loop, in the middle of a step.
TEST(CompletionStreamTest, UsesNoMetricsAfterItsEnd) {
  const auto tokenizer = data::load_tokenizer(MW_RESOURCES "/base-model");
  HeldExecutor executor;
  ServingLoop loop(small_server(), executor, 8);
  ServerMetrics metrics("tiny");
  {
    CompletionStream stream(loop, metrics, {.prompt_ids = {1, 2, 3}, .sampling = {.max_new_tokens = 50}},
                            IncrementalDetokenizer(*tokenizer, {}));
    executor.await_step();
  }
  executor.release();
  EXPECT_TRUE(becomes_true([&] { return executor.open() == 0 && loop.live_requests().empty(); }));
  const std::string text = metrics.prometheus_text(loop.state());
  EXPECT_NE(text.find("time_to_first_token_seconds_count{model_name=\"tiny\"} 0"), std::string::npos) << text;
  EXPECT_NE(text.find("finished_reason=\"abort\",model_name=\"tiny\"} 1"), std::string::npos) << text;
}

}  // namespace
}  // namespace mw::serve
