// SPDX-License-Identifier: Apache-2.0
// An answer of a model server as it is generated: text, tokens with their probabilities, speed. Create, drain and
// destroy it on one thread; the server generates on its own.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/mailbox.h"
#include "core/jobs/model_server.h"
#include "core/serve/http/completion_stream.h"

namespace mw::views {

struct AnswerToken {
  std::string text;        // new text of the answer; empty within a character of several tokens
  std::string piece;       // as the tokenizer writes it
  double probability = 0;  // of the model, before temperature and limits
  struct Alternative {
    std::string piece;
    double probability = 0;
  };
  std::vector<Alternative> likeliest{};
};

class StreamedAnswer {
 public:
  // Throws what ServingLoop::submit() throws.
  StreamedAnswer(std::shared_ptr<jobs::ModelServer> server, serve::GenerationRequest request);
  ~StreamedAnswer() { cancel(); }  // cancels
  void cancel();
  bool drain();  // takes what was generated; true: something was
  const std::vector<AnswerToken>& tokens() const { return tokens_; }
  std::string text() const;
  bool has_ended() const { return ended_.has_value(); }
  std::optional<serve::FinishReason> finish_reason() const;
  std::string error() const { return ended_ ? ended_->error : std::string(); }
  std::optional<double> first_token_seconds() const;  // from the request to its first token
  std::optional<double> tokens_per_second() const;    // after the first token

 private:
  struct Arrival {
    serve::TokenEvent event;
    double at_s = 0;
  };
  void add(const serve::TokenEvent& event);

  std::shared_ptr<jobs::ModelServer> server_;
  std::shared_ptr<Mailbox<Arrival>> arrivals_ = std::make_shared<Mailbox<Arrival>>();
  serve::IncrementalDetokenizer text_;
  std::vector<AnswerToken> tokens_;
  std::optional<serve::TokenEvent> ended_;
  double began_s_ = 0, first_s_ = 0, last_s_ = 0;
  serve::RequestId id_{};
};

// Compares two texts word by word. Thread-safe.
struct TextPart {
  enum class Kind { same, missing, extra } kind = Kind::same;  // missing: only in `expected`; extra: only in `actual`
  std::string text;
  bool operator==(const TextPart&) const = default;
};
// Returns a shortest sequence of parts that turns `expected` into `actual`. Texts of more than 2,000 words are compared
// as a whole.
std::vector<TextPart> text_difference(std::string_view expected, std::string_view actual);

}  // namespace mw::views
