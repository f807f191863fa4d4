// SPDX-License-Identifier: Apache-2.0
#include <sentencepiece_processor.h>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/data/tokenizer/bpe_tokenizer.h"
#include "core/data/tokenizer/sentencepiece_check.h"

namespace mw::data {
namespace {

class SentencePieceTokenizer : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const std::filesystem::path& file) : source_(file.string()) {
    const std::string content = read_file(file, 256u << 20);
    check_sentencepiece_model(content, source_);
    check(model_.LoadFromSerializedProto(content), "not a usable SentencePiece model");
    bos_ = model_.bos_id();
    eos_ = model_.eos_id();
    pad_ = model_.pad_id() >= 0 ? model_.pad_id() : eos_;
    if (bos_ < 0 || eos_ < 0)
      throw Error({.id = "TOKENIZER",
                   .message = "there is no beginning-of-text or end-of-text piece",
                   .file = source_,
                   .expected = "<bos> and <eos>"});
  }

  std::vector<int> encode(std::string_view text) const override {
    std::vector<int> ids;
    check(model_.Encode({text.data(), text.size()}, &ids), "cannot encode");
    return ids;
  }
  std::string decode(std::span<const int> ids, Specials specials) const override {
    std::string text;
    std::vector<int> run;
    const auto flush = [&] {
      std::string part;
      if (!run.empty()) check(model_.Decode(run, &part), "cannot decode");
      text += part;
      run.clear();
    };
    for (const int id : ids) {
      if (id < 0 || id >= size()) continue;
      if (specials == Specials::drop || !model_.IsControl(id)) {  // the library drops control pieces itself
        run.push_back(id);
      } else {
        flush();
        text += model_.IdToPiece(id);
      }
    }
    flush();
    return text;
  }
  int size() const override { return model_.GetPieceSize(); }
  std::string piece(int id) const override { return id < 0 || id >= size() ? "" : model_.IdToPiece(id); }
  int find(std::string_view piece) const override {
    const int id = model_.PieceToId({piece.data(), piece.size()});
    return id >= 0 && id < size() && model_.IdToPiece(id) == piece ? id : -1;  // the library answers unk otherwise
  }

 private:
  void check(const sentencepiece::util::Status& status, const std::string& message) const {
    if (!status.ok())
      throw Error({.id = "TOKENIZER", .message = message, .file = source_, .found = status.error_message()});
  }

  std::string source_;
  sentencepiece::SentencePieceProcessor model_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_sentencepiece_tokenizer(const std::filesystem::path& file) {
  return std::make_unique<SentencePieceTokenizer>(file);
}

}  // namespace mw::data
