// SPDX-License-Identifier: Apache-2.0
// Prompts of about a wanted number of tokens for a server whose tokenizer is unknown: common English words, determined
// by the request's seeds. Immutable; any thread.
#pragma once
#include <functional>
#include <string>

#include "core/serve/load/load.h"

namespace mw::serve {

class WordPrompts {
 public:
  // Calibrates tokens per word by two calls of `count`, which returns the prompt tokens that the server counts for a
  // text. Throws Error SERVER if the counts do not grow with the text.
  explicit WordPrompts(const std::function<int(const std::string&)>& count);
  std::string text(const TimedRequest& request) const;

 private:
  double words(int tokens) const;
  double per_word_ = 1, fixed_ = 0;  // tokens = fixed + per_word * words
};

}  // namespace mw::serve
