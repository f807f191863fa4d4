// SPDX-License-Identifier: Apache-2.0
// Runs a Load against any OpenAI-compatible server: streamed completions with ignore_eos, sent at their intended times,
// one thread per request in flight. Timeouts, truncated streams and implausible token counts are failed requests. Reads
// queue and KV cache from /metrics if the server uses vLLM's names. Not thread-safe.
#pragma once
#include <memory>

#include "core/serve/load/load_backend.h"
#include "core/serve/load/stream_client.h"

namespace mw::serve {

struct HttpLoadOptions {
  HttpTarget target;
  // Ids of prompt tokens, [first_id, vocab), without special tokens. vocab 0: the tokenizer is unknown; prompts are
  // then English words, calibrated by the server's own token counts, and a warning says so.
  int first_id = 0, vocab = 0;
  int max_in_flight = 900;  // below the 1024 descriptors that select() in the HTTP library can watch
};

// Throws Error URL, and SERVER if no server answers or it does not have the model.
std::unique_ptr<LoadBackend> make_http_backend(HttpLoadOptions options);

}  // namespace mw::serve
