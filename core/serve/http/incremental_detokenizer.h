// SPDX-License-Identifier: Apache-2.0
// Converts the tokens of one completion to text as they arrive. Holds back incomplete characters and text that may turn
// out to be part of a stop string. Not thread-safe.
#pragma once
#include <string>
#include <vector>

#include "core/data/tokenizer/tokenizer.h"

namespace mw::serve {

class IncrementalDetokenizer {
 public:
  // `markers`: special tokens that are part of the text, which has no others.
  IncrementalDetokenizer(const data::Tokenizer& tokenizer, std::vector<std::string> stops,
                         std::vector<int> markers = {})
      : tokenizer_(tokenizer), stops_(std::move(stops)), markers_(std::move(markers)) {}
  std::string add(int token);                // returns new text as valid UTF-8, possibly empty
  std::string finish();                      // returns the text held back; incomplete characters become U+FFFD
  bool stopped() const { return stopped_; }  // the text ended before a stop string

 private:
  std::string decode(bool last);
  std::string release(bool last);

  const data::Tokenizer& tokenizer_;
  std::vector<std::string> stops_;
  std::vector<int> markers_;
  std::vector<int> ids_;
  size_t decoded_ = 0;  // leading ids_ whose text has been decoded; kept as context for the next ones
  std::string held_;    // decoded text that has not been returned
  bool stopped_ = false;
};

}  // namespace mw::serve
