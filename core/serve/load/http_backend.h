// SPDX-License-Identifier: Apache-2.0
// Plays a Load against any OpenAI-compatible server: streamed completions that ignore end-of-text, an open loop by
// intended time, a thread for each request in flight. Failures, hangs, cut streams and usage that cannot be true are
// failed requests. Reads queue and KV cache from /metrics where the server has vLLM's names. One thread drives it.
#pragma once
#include <memory>

#include "core/serve/load/stream_client.h"
#include "core/serve/load/sweep.h"

namespace mw::serve {

struct HttpLoadOptions {
  HttpTarget target;
  // Token ids of prompts, [first_id, vocab), none of them special. vocab 0: the tokenizer is not known; prompts are
  // then English words, as many as the server's own count says are needed, and `warnings` say so.
  int first_id = 0, vocab = 0;
  int most_in_flight = 900;  // below the 1024 descriptors that select() in the HTTP library can watch
};

// Throws Error URL; SERVER where nothing answers or the model is not there.
std::unique_ptr<LoadBackend> make_http_backend(HttpLoadOptions options);

}  // namespace mw::serve
