// SPDX-License-Identifier: Apache-2.0
// Tokens of one answer into text as they come: only whole characters, nothing that a stop string may still take back.
// One thread.
#pragma once
#include <string>
#include <vector>

#include "core/data/tokenizer/tokenizer.h"

namespace mw::serve {

class IncrementalDetokenizer {
 public:
  IncrementalDetokenizer(const data::Tokenizer& tokenizer, std::vector<std::string> stops)
      : tokenizer_(tokenizer), stops_(std::move(stops)) {}
  std::string add(int token);                // the text that is certain with it; may be empty, is always valid UTF-8
  std::string finish();                      // what was held back; halves of characters as U+FFFD
  bool stopped() const { return stopped_; }  // a stop string came: the answer ends before it

 private:
  std::string decoded(bool last);
  std::string release(bool last);

  const data::Tokenizer& tokenizer_;
  std::vector<std::string> stops_;
  std::vector<int> ids_;
  size_t shown_ = 0;  // ids_ before it give text that has been decoded, which the others continue
  std::string held_;  // decoded and not yet given out
  bool stopped_ = false;
};

}  // namespace mw::serve
