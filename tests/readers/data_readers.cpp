// SPDX-License-Identifier: GPL-3.0-or-later
// Readers of tokenizers and training data.
#include <zstd.h>

#include <memory>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/dataset/dataset.h"
#include "core/data/dataset/lengths.h"
#include "core/data/dataset/token_rows.h"
#include "core/data/jinja/template.h"
#include "core/data/tokenizer/tokenizer.h"
#include "core/data/tokenizer/tokenizer_file.h"
#include "tests/readers/reader.h"

namespace mw::readers {
namespace {

namespace fs = std::filesystem;
using namespace data;
using Texts = std::vector<std::string>;

// A small complete tokenizer: the fixture with only its first pieces and merges.
Json small_tokenizer(const char* name) {
  Json json = Json::parse(fixture(std::string("tokenizer_bpe/") + name));
  Json vocabulary = Json::object(), merges = Json::array();
  int id = 0;
  for (const char* piece : {"<pad>", "<eos>", "<bos>", "<unk>", "<0x41>", "a", "b", "ab", "\xe2\x96\x81",
                            "\xe2\x96\x81"
                            "a"})
    vocabulary[piece] = id++;
  const bool pairs = json["model"]["merges"][0].is_array();
  for (const auto& [left, right] : {std::pair("a", "b"), std::pair("\xe2\x96\x81", "a")})
    merges.push_back(pairs ? Json::array({left, right}) : Json(std::string(left) + " " + right));
  json["model"]["vocab"] = vocabulary;
  json["model"]["merges"] = merges;
  Json added = Json::array();
  for (const Json& token : json["added_tokens"])
    if (token["id"] < 4) added.push_back(token);
  json["added_tokens"] = added;
  return json;
}

void try_out(const Tokenizer& tokenizer) {
  const std::vector<int> ids = tokenizer.encode("ab a <bos>\xc3\xa9 abba\n");
  tokenizer.decode(ids, Specials::keep);
  for (const int id : ids)
    if (id < 0 || id >= tokenizer.size()) std::abort();
}

void tokenizer_json(std::string_view bytes) {
  static const Scratch scratch;
  try_out(*load_tokenizer(scratch.put("tokenizer.json", bytes)));
}
Texts tokenizer_json_seeds() {
  return {small_tokenizer("tokenizer.json").dump(), small_tokenizer("tokenizer_legacy.json").dump()};
}

void tokenizer_file(std::string_view bytes) {
  parse_tokenizer_file(bytes, "tokenizer.json");
}

// Fields of a model; the library receives it only if the check accepts it.
void sentencepiece(std::string_view bytes) {
  check_sentencepiece_model(bytes, "tokenizer.model");
  static const Scratch scratch;
  try_out(*load_tokenizer(scratch.put("tokenizer.model", bytes)));
}
std::string piece(const std::string& text, int type) {
  std::string p = std::string("\x0a") + static_cast<char>(text.size()) + text + std::string("\x15\0\0\0\0", 5);
  if (type != 1) p += std::string("\x18") + static_cast<char>(type);
  return std::string("\x0a") + static_cast<char>(p.size()) + p;
}
Texts sentencepiece_seeds() {
  const std::string all = fixture("tokenizer_spm/tokenizer.model");
  // The settings of trainer and normalizer are at the end.
  std::string settings;
  size_t at = 0;
  while (at + 2 < all.size() && all[at] == '\x0a') at += 2 + static_cast<unsigned char>(all[at + 1]);
  settings = all.substr(at);
  std::string pieces = piece("<pad>", 3) + piece("<eos>", 3) + piece("<bos>", 3) + piece("<unk>", 2);
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    pieces += piece(name, 6);
  }
  for (const char* text : {"a", "b", "ab", "\xe2\x96\x81",
                           "\xe2\x96\x81"
                           "a"})
    pieces += piece(text, 1);
  return {pieces + settings};
}

class Bytes : public Tokenizer {
 public:
  std::vector<int> encode(std::string_view text) const override {
    std::vector<int> ids;
    for (const char c : text) ids.push_back(3 + static_cast<unsigned char>(c));
    return ids;
  }
  std::string decode(std::span<const int>, Specials) const override { return {}; }
  int size() const override { return 259; }
  std::string piece(int id) const override { return std::to_string(id); }
  int find(std::string_view text) const override {
    return text == start_of_turn(options::ChatFormat::gemma3) || text == end_of_turn(options::ChatFormat::gemma3) ? 258
                                                                                                                  : -1;
  }
};

void dataset(std::string_view bytes, const char* name) {
  static const Scratch scratch;
  static const Bytes tokenizer;
  const auto [which, rest] = choose(bytes, 4);
  DatasetOptions options;
  options.path = scratch.put(name, rest);
  options.chat = which & 1 ? options::ChatFormat::gemma3 : options::ChatFormat::none;
  options.on_error = options::OnError::skip;
  options.overlong = which & 2 ? options::Overlong::truncate : options::Overlong::drop;
  options.max_len = which & 2 ? 64 : 8192;
  const Dataset all = load_dataset(options, tokenizer);
  for (const Example& e : all.train)
    if (e.ids.size() != e.loss.size() || e.ids.size() > static_cast<size_t>(options.max_len)) std::abort();
}
void jsonl(std::string_view bytes) {
  dataset(bytes, "rows.jsonl");
}
Texts jsonl_seeds() {
  return {"0{\"prompt\":\"a\",\"completion\":\"b\"}\n{\"prompt\":\"c\",\"completion\":\"d\"}\r\n",
          "1{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"}]}\n",
          "1{\"conversations\":[{\"from\":\"human\",\"value\":\"a\"},{\"from\":\"gpt\",\"value\":\"b\"}]}\n\n",
          "2[{\"instruction\":\"a\",\"input\":\"\",\"output\":\"b\"},\n{\"instruction\":\"c\",\"output\":\"d\"}]",
          "3{\"data\":[{\"text\":\"a \\u00e9\"},{\"text\":\"b\"}],\"n\":2}",
          "0\xef\xbb\xbf{\"text\":\"\xc3\xa9\"}\n"};
}
void text_file(std::string_view bytes) {
  dataset(bytes, "rows.txt");
}
Texts text_file_seeds() {
  return {"0a line\nanother\r\n\n", "2" + std::string(300, 'x')};
}

// The lowest bit of the second byte selects the extension.
void table(std::string_view bytes) {
  const auto [which, rest] = choose(bytes.substr(std::min<size_t>(bytes.size(), 1)), 2);
  dataset(std::string(bytes.substr(0, 1)) + std::string(rest), which == 0 ? "rows.csv" : "rows.tsv");
}
Texts table_seeds() {
  return {"00prompt,completion\n\"a, \"\"b\"\"\",c\r\n\n\"d\ne\",f\n", "30text;n\n\"a;b\";1\n",
          "01instruction\tinput\toutput\na\t\"\"\tb\n\"c\"d\te\n",
          "10messages\n\"[{\"\"role\"\":\"\"user\"\",\"\"content\"\":\"\"a\"\"},{\"\"role\"\":\"\"assistant\"\","
          "\"\"content\"\":\"\"b\"\"}]\"\n"};
}

void compressed(std::string_view bytes) {
  const auto [which, rest] = choose(bytes, 2);
  dataset("0" + std::string(rest), which == 0 ? "rows.jsonl.gz" : "rows.jsonl.zst");
}
Texts compressed_seeds() {
  const std::string rows = jsonl_seeds().front().substr(1);
  std::string zstd(ZSTD_compressBound(rows.size()), '\0');
  zstd.resize(ZSTD_compress(zstd.data(), zstd.size(), rows.data(), rows.size(), 3));
  const std::string gzip = fixture("data/rows.jsonl.gz");
  return {"0" + gzip, "0" + gzip + gzip, "1" + zstd, "1" + zstd + zstd};
}

// A template, rendered with and without tools. Its limits are lower than those of the product, so that an input takes
// no second.
void chat_template(std::string_view bytes) {
  static const Json messages =
      Json::parse(R"([{"role": "system", "content": " s "}, {"role": "user", "content": "a\u00e9"},
      {"role": "assistant", "content": "b", "tool_calls": [{"function": {"name": "f", "arguments": {"x": [1, 2.5, null]}}}]},
      {"role": "tool", "content": "{}"}])");
  static const Json tools = Json::parse(R"([{"type": "function", "function": {"name": "f", "parameters": {}}}])");
  const jinja::Template compiled(bytes, "template");
  const jinja::Limits limits{.steps = 20'000, .bytes = 400'000, .depth = 400};
  for (const bool has_tools : {false, true}) try {
      const jinja::Rendered out = compiled.render({{"messages", messages},
                                                   {"tools", has_tools ? tools : Json(nullptr)},
                                                   {"bos_token", "<bos>"},
                                                   {"add_generation_prompt", has_tools}},
                                                  0, limits);
      for (const jinja::GeneratedRange& range : out.generated)
        if (range.begin > range.end || range.end > out.text.size()) std::abort();
      if (first_invalid_utf8(out.text) != std::string::npos) std::abort();
    } catch (const Error&) {
    }
}
Texts chat_template_seeds() {
  Texts out;
  for (const char* name : {"turns", "tools", "dated"})
    out.push_back(fixture(std::string("chat_templates/") + name + ".jinja"));
  for (const char* text :
       {"{{ messages|map(attribute='content')|join(', ', "
        "attribute='x')|upper|lower|title|capitalize|reverse|list|length }}",
        "{{ [3, 1, 2]|sort(reverse=true)|batch(2, 0)|list }}{{ {'b': 1, 'a': 2}|dictsort(by='value')|tojson(indent=1) "
        "}}",
        "{% for a, b in tools[0]|items recursive %}{{ loop(b|items) if b is mapping else b }}{% endfor %}",
        "{{ 'a-b'.split('-', 1)[::-1]|join|replace('a', 'b')|indent(2, true)|trim|e|int(default=1)|abs|round(1) }}",
        "{{ range(1, 9, 2)|select('odd')|sum + 2 ** 3 // 4 % 5 }}{{ 'x' * 3 ~ 1.5 }}{{ [1] + [2] }}{{ (1, 2) < (1, 3) "
        "}}",
        "{% call(x) m() %}{{ x }}{% endcall %}{% filter upper %}a{% endfilter %}{% with a = 1 %}{{ a }}{% endwith %}",
        "{{ strftime_now('%Y') }}{{ raise_exception('no') }}"})
    out.push_back(text);
  return out;
}

void lengths(std::string_view bytes) {
  static const Scratch scratch;
  const auto [which, rest] = choose(bytes, 2);
  const LengthCounts counts = read_lengths(scratch.put(which == 0 ? "lengths.json" : "lengths.csv", rest));
  length_stats(counts);
  length_bins(counts, 4096, 64);
}
Texts lengths_seeds() {
  return {"0{\"lengths\":[[10,3],[20,4]],\"source\":\"x\"}", "1tokens,rows\n10,3\n20,4\n"};
}

// Writes the checksum that belongs to the content into its end, where TokenRows compares it; no fuzzer would find it.
void seal_token_rows(std::span<std::byte> content) {
  constexpr std::uint64_t kFooter = 96, kSum = 48, kRecord = sizeof(TokenRecord);
  if (content.size() < kFooter) return;
  const std::uint64_t footer = content.size() - kFooter;
  const auto number = [&](std::uint64_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, content.data() + at, sizeof value);
    return value;
  };
  Sha256 sum;
  const auto add = [&](std::uint64_t at, std::uint64_t bytes) {
    if (at <= content.size() && bytes <= content.size() - at)
      sum.add({reinterpret_cast<const char*>(content.data()) + at, bytes});
  };
  std::uint64_t left = std::min<std::uint64_t>(number(footer), content.size());
  const std::uint64_t blocks = std::min<std::uint64_t>(number(footer + 8), content.size() / 8),
                      table = number(footer + 16);
  for (std::uint64_t b = 0; b < blocks && table <= footer && 8 * (b + 1) <= footer - table; ++b) {
    const auto records = std::min<std::uint64_t>(left, TokenRowsWriter::kBlockRows);
    add(number(table + 8 * b), records * kRecord);
    left -= records;
  }
  add(table, 8 * blocks);
  add(number(footer + 24), number(footer + 32));
  add(footer, kSum);
  const Sha256Digest digest = sum.finish();
  std::memcpy(content.data() + footer + kSum, digest.data(), digest.size());
}

// The first byte says whether the checksum is replaced by the right one.
void token_rows(std::string_view bytes) {
  const auto [which, rest] = choose(bytes, 2);
  std::vector<std::byte> content(rest.size());
  std::copy(rest.begin(), rest.end(), reinterpret_cast<char*>(content.data()));
  if (which == 1) seal_token_rows(content);
  const TokenRows rows(std::move(content));
  DatasetOptions options;
  options.max_len = 4;
  options.overlong = options::Overlong::truncate;
  std::vector<int> ids;
  std::vector<std::uint8_t> loss;
  for (std::int64_t i = 0; i < rows.size(); ++i) rows.read(i, rows.row(i, options).used, ids, loss);
}
Texts token_rows_seeds() {
  std::string content;
  TokenRowsWriter writer(
      [&](std::span<const std::byte> more) { content.append(reinterpret_cast<const char*>(more.data()), more.size()); },
      300);
  for (int i = 0; i < 3; ++i) {
    ScannedRow row;
    row.example = {.row = i, .ids = {2, 5, 6, 299, 7}, .loss = {0, 0, 1, 1, 1}, .prompt = "a", .answer = "b"};
    if (i == 1) row = {.state = RowState::bad, .problem = {.id = "DATA-ROW", .message = "m", .place = "line 2"}};
    writer.add(row);
  }
  writer.finish({{"sha256", "x"}});
  return {"0" + content, "1" + content};
}

void utf8(std::string_view bytes) {
  const std::string valid = valid_utf8(bytes);
  if (valid_utf8(valid) != valid) std::abort();
  excerpt(std::string(bytes), 40);
  Json(valid).dump();  // throws if it is not valid
}
Texts utf8_seeds() {
  return {"a\xc3\xa9\xe2\x96\x81\xf0\x9f\x98\x80", "\xc3", "\xed\xa0\x80\xff\xf8\x80"};
}

}  // namespace

Reader tokenizer_json_reader() {
  return {"tokenizer_json", tokenizer_json, tokenizer_json_seeds};
}
Reader tokenizer_file_reader() {
  return {"tokenizer_file", tokenizer_file, tokenizer_json_seeds};
}
Reader sentencepiece_reader() {
  return {"sentencepiece", sentencepiece, sentencepiece_seeds, 8192};
}
Reader jsonl_reader() {
  return {"jsonl", jsonl, jsonl_seeds};
}
Reader text_file_reader() {
  return {"text_file", text_file, text_file_seeds};
}
Reader table_reader() {
  return {"table", table, table_seeds};
}
Reader compressed_reader() {  // the window of a zstd frame may have 128 MiB
  return {.name = "compressed", .read = compressed, .seeds = compressed_seeds, .fixed_bytes = 160 << 20};
}
Reader chat_template_reader() {
  return {"chat_template", chat_template, chat_template_seeds, 3072, 4000, 24 << 20};
}
Reader lengths_reader() {
  return {"lengths", lengths, lengths_seeds};
}
Reader token_rows_reader() {
  return {"token_rows", token_rows, token_rows_seeds};
}
Reader utf8_reader() {
  return {"utf8", utf8, utf8_seeds, 512};
}

std::vector<Reader> data_readers() {
  return {tokenizer_json_reader(), tokenizer_file_reader(), sentencepiece_reader(), jsonl_reader(),
          text_file_reader(),      chat_template_reader(),  table_reader(),         compressed_reader(),
          lengths_reader(),        token_rows_reader(),     utf8_reader()};
}

}  // namespace mw::readers
