// SPDX-License-Identifier: Apache-2.0
// PromptMode of about as many tokens as wanted for a server whose tokenizer is not known: common English words, a
// function of (seed, index) as token ids are, and how many of them make a token for this server. Immutable; any thread.
#pragma once
#include <functional>
#include <string>

#include "core/serve/load/load.h"

namespace mw::serve {

class WordPrompts {
 public:
  // `count`: prompt tokens that the server counts for a text; asked twice.
  explicit WordPrompts(const std::function<int(const std::string&)>& count);
  std::string text(const TimedRequest& request) const;
  double tokens_per_word() const { return per_word_; }

 private:
  double words(int tokens) const;
  double per_word_ = 1, fixed_ = 0;  // tokens = fixed + per_word * words
};

}  // namespace mw::serve
