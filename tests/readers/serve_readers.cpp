// SPDX-License-Identifier: GPL-3.0-or-later
// Readers of network input and recorded traffic.
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/serve/http/answer_reader.h"
#include "core/serve/http/completion_stream.h"
#include "core/serve/http/http_head.h"
#include "core/serve/http/openai_protocol.h"
#include "core/serve/load/load.h"
#include "core/serve/load/metrics_poller.h"
#include "core/serve/load/stream_client.h"
#include "tests/readers/reader.h"

namespace mw::readers {
namespace {

using namespace serve;
using Texts = std::vector<std::string>;

void openai(std::string_view bytes) {
  const auto [which, rest] = choose(bytes, 2);
  try {
    parse_openai_request(which == 0 ? Endpoint::completions : Endpoint::chat, rest);
  } catch (const Error& error) {
    to_json(to_http_error(error)).dump();  // the response must be JSON
    throw;
  }
}
Texts openai_seeds() {
  return {
      R"(0{"model":"m","prompt":"Once","max_tokens":5,"temperature":0.5,"top_p":0.9,"stop":["\n"],"stream":true,)"
      R"("stream_options":{"include_usage":true,"continuous_usage_stats":true},"seed":7})",
      R"(0{"prompt":[1,2,3],"max_completion_tokens":5,"ignore_eos":true,"stop_token_ids":[7],"priority":-1,"top_k":4})",
      R"(1{"messages":[{"role":"developer","content":"a"},{"role":"user","content":[{"type":"text","text":"b"}]}],)"
      R"("response_format":{"type":"text"},"logprobs":false,"add_special_tokens":false,"n":1})"};
}

// The pieces in which a request arrives do not affect how its head and body are read or rejected.
void http_request(std::string_view bytes) {
  const auto [cut, rest] = choose(bytes, 32);
  size_t scanned = 0, size = 0;
  for (size_t end = 0; size == 0 && end < rest.size();) {
    end = std::min(end + cut + 1, rest.size());
    size = head_size(rest.substr(0, end), scanned);
  }
  size_t scanned_whole = 0;
  if (head_size(rest, scanned_whole) != size) std::abort();
  const HttpHead head = parse_head(rest.substr(0, size));
  if (head.chunked && head.content_length) std::abort();
  if (!head.chunked) return;
  const auto body_in_pieces = [&, body = rest.substr(size)](size_t piece) {
    ChunkedBodyReader chunks;
    std::string text;
    size_t read = 0;
    while (read < body.size() && !chunks.has_ended()) read += chunks.read(body.substr(read, piece), text);
    return std::tuple(text, read, chunks.has_ended());
  };
  if (body_in_pieces(cut + 1) != body_in_pieces(rest.size())) std::abort();
}
Texts http_request_seeds() {
  return {"7POST /v1/completions HTTP/1.1\r\nHost: localhost:8000\r\nContent-Length: 5\r\n\r\nhello",
          "0POST / HTTP/1.1\r\nhost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n",
          "9GET /v1/models?x=%20 HTTP/1.0\r\nX-Any: \t a b \r\n\r\n", "1OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n"};
}

StreamedCompletion read_stream(std::string_view bytes, size_t cut) {
  StreamedCompletion out;
  CompletionReader reading(out, {.prompt_tokens = 3, .output_tokens = 4}, HttpClock::now());
  bool more = true;
  for (std::string_view rest = bytes; more && !rest.empty(); rest.remove_prefix(std::min(cut, rest.size())))
    more = reading.feed(rest.substr(0, cut));
  reading.conclude();
  return out;
}

// The pieces in which data arrives do not affect the result.
void stream(std::string_view bytes) {
  const auto [cut, rest] = choose(bytes, 32);
  const StreamedCompletion whole = read_stream(rest, rest.size() + 1), pieces = read_stream(rest, cut + 1);
  const bool same =
      whole.result.error == pieces.result.error && whole.text == pieces.text && whole.pieces == pieces.pieces;
  if (!whole.result.error.empty() && pieces.result.error.empty()) std::abort();
  if (whole.result.error.empty() && !same) std::abort();
  Json(whole.result.error).dump();  // is displayed
}
Texts stream_seeds() {
  const std::string text =
      "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":null}]}\n\n: comment\r\n"
      "data: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"length\"}]}\r\n\r\n"
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,"
      "\"prompt_tokens_details\":{\"cached_tokens\":1}}}\n\ndata: [DONE]\n\n";
  return {"0" + text, "7" + text, "3data: {\"error\":{\"message\":\"no\"}}\n\n", "1data: {\ndata: }\n\n"};
}

void server_error(std::string_view bytes) {
  Json(error_message_in(std::string(bytes))).dump();
}
Texts server_error_seeds() {
  return {R"({"error":{"message":"no"}})", R"({"message":"no","error":"x"})", "not JSON \xff"};
}

void prometheus(std::string_view bytes) {
  sum_prometheus_metrics(bytes);
}
Texts prometheus_seeds() {
  return {"# HELP x\nvllm:num_requests_running{engine=\"0\",model=\"a}\\\"b\"} 3.0\nplain 1e3 1700000000\nn{ NaN\n"};
}

void workload(std::string_view bytes) {
  static const Scratch scratch;
  const auto [which, rest] = choose(bytes, 2);
  read_workload(scratch.put(which == 0 ? "requests.csv" : "requests.jsonl", rest));
}
Texts workload_seeds() {
  return {"0arrival_s,prompt_tokens,output_tokens\n0.5,10,20\n1,5,6\n", "0num_prefill_tokens,num_decode_tokens\n1,2\n",
          "1{\"arrival_s\":0.5,\"prompt_tokens\":10,\"output_tokens\":20}\n{\"input_len\":3,\"output_len\":4}\n",
          "1" + fixture("bench/vllm_detailed.json"), "1[{\"prompt_len\":1,\"output_len\":2}]"};
}

class ByteTokenizer : public data::Tokenizer {
 public:
  std::vector<int> encode(std::string_view) const override { return {}; }
  std::string decode(std::span<const int> ids, data::Specials) const override {
    std::string text;
    for (const int id : ids) text += static_cast<char>(id);
    return valid_utf8(text);
  }
  int size() const override { return 256; }
  std::string piece(int id) const override { return std::to_string(id); }
  int find(std::string_view) const override { return -1; }
};

// For any tokens, the output consists of whole characters and contains no stop string.
void text_stream(std::string_view bytes) {
  static const ByteTokenizer tokenizer;
  const std::string stop = "ab\xc3\xa9";
  IncrementalDetokenizer out(tokenizer, {stop, "zz"});
  std::string all;
  for (const char c : bytes) {
    const std::string text = out.add(static_cast<unsigned char>(c));
    if (valid_utf8(text) != text) std::abort();
    all += text;
    if (out.stopped()) break;
  }
  all += out.finish();
  Json(all).dump();
  if (all.find(stop) != std::string::npos || all.find("zz") != std::string::npos) std::abort();
}
Texts text_stream_seeds() {
  return {"one ab\xc3\xa9 two", "a\xf0\x9f\x98\x80zab", "\xc3\xc3\xe2\x96zz"};
}

// Formats of answers by the first byte: Gemma 4, FunctionGemma and JSON, each with a call or a thought that the prompt
// begins.
AnswerReader reader_of(size_t which) {
  AnswerFormat format{.notation = which % 3 == 2 ? CallNotation::json : CallNotation::gemma,
                      .call_begin = "<|tool_call>",
                      .call_end = "<tool_call|>",
                      .quote = which % 3 == 0   ? "<|\"|>"
                               : which % 3 == 1 ? "<escape>"
                                                : "",
                      .response_begin = {},
                      .thought_begin = "<|channel>",
                      .thought_end = "<channel|>",
                      .thought_label = "thought\n"};
  AnswerReading reading{.reads_calls = which % 5 != 4,
                        .only_one_call = which % 5 == 1,
                        .begins_with_thought = which % 5 == 2,
                        .forced_call = which % 5 == 3 ? forced_call(format, "f") : ""};
  return {format, std::move(reading)};
}
AnswerPart read_answer(AnswerReader reader, std::string_view text, size_t cut) {
  AnswerPart out;
  for (; !text.empty(); text.remove_prefix(std::min(cut, text.size()))) append(out, reader.add(text.substr(0, cut)));
  append(out, reader.finish());
  return out;
}

// The pieces in which an answer arrives do not affect what is read, and arguments are JSON objects.
void answer(std::string_view bytes) {
  const auto [which, rest] = choose(bytes, 15);
  const auto [cut, data] = choose(rest, 32);
  const std::string text = valid_utf8(data);
  const AnswerPart whole = read_answer(reader_of(which), text, text.size() + 1);
  const AnswerPart pieces = read_answer(reader_of(which), text, cut + 1);
  if (whole.content != pieces.content || whole.reasoning != pieces.reasoning) std::abort();
  if (whole.calls.size() != pieces.calls.size()) std::abort();
  for (size_t i = 0; i < whole.calls.size(); ++i) {
    if (whole.calls[i].arguments != pieces.calls[i].arguments || whole.calls[i].name.empty()) std::abort();
    if (!Json::parse(whole.calls[i].arguments).is_object()) std::abort();
  }
  completion_json({Endpoint::chat, "chatcmpl-1", "m", 0}, whole, "stop", {}).dump();
}
Texts answer_seeds() {
  return {
      "05<|channel>thought\nHm.<channel|>I see. <|tool_call>call:f{a:1,b:<|\"|>x<|\"|>,c:[true,None],d:{}}<tool_call|>",
      "11<|tool_call>call:f{a:<escape>b c<escape>,d:\"e\\n\",}<tool_call|> <|tool_call>call:g{}<tool_call|>",
      "29<|tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1e3}}\n<tool_call|>",
      "32a:1}<tool_call|>",
      "23Hm.<channel|>\n\nYes <b> 1 < 2",
      "42<|tool_call>call:f{}"};
}

}  // namespace

Reader openai_reader() {
  return {"openai", openai, openai_seeds};
}
Reader http_request_reader() {
  return {"http_request", http_request, http_request_seeds, 1024};
}
Reader stream_reader() {
  return {"stream", stream, stream_seeds};
}
Reader server_error_reader() {
  return {"server_error", server_error, server_error_seeds, 1024};
}
Reader prometheus_reader() {
  return {"prometheus", prometheus, prometheus_seeds, 2048};
}
Reader workload_reader() {
  return {"workload", workload, workload_seeds};
}
Reader text_stream_reader() {
  return {"text_stream", text_stream, text_stream_seeds, 256};
}

Reader answer_reader() {
  return {"answer", answer, answer_seeds};
}

std::vector<Reader> serve_readers() {
  return {openai_reader(),     http_request_reader(), stream_reader(),      server_error_reader(),
          prometheus_reader(), workload_reader(),     text_stream_reader(), answer_reader()};
}

}  // namespace mw::readers
