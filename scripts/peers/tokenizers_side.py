# SPDX-License-Identifier: GPL-3.0-or-later
"""The `tokenizers` side of scripts/tokenizer-peer.sh: the work of mw_tokenizer_bench.

  tokenizers_side.py encode TOKENIZER.json FILE [rounds]     seconds, bytes, tokens and a hash of all ids as JSON
  tokenizers_side.py train TOKENIZER.json SIZE FILE...       makes a tokenizer like Gemma's of the given vocabulary size

The number of threads is RAYON_NUM_THREADS.
"""
import hashlib
import json
import sys
import time

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers


def train(path: str, size: int, files: list) -> None:
    """Gemma's pipeline: spaces are U+2581, bytes as fallback, no merge across a word."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.pre_tokenizer = pre_tokenizers.Split("\u2581", "merged_with_next")  # only while it is trained
    special = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{b:02X}>" for b in range(256))]
    tokenizer.train(files, trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False))
    document = json.loads(tokenizer.to_str())
    document["pre_tokenizer"] = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    document["added_tokens"] = document["added_tokens"][:4]
    with open(path, "w", encoding="utf-8") as out:
        json.dump(document, out, ensure_ascii=False)


def encode(path: str, file: str, rounds: int) -> None:
    tokenizer = Tokenizer.from_file(path)
    with open(file, encoding="utf-8", newline="\n") as source:
        lines = [line[:-1] if line.endswith("\n") else line for line in source]
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        found = tokenizer.encode_batch_fast(lines, add_special_tokens=False)
        best = min(best, time.perf_counter() - start)
    ids = hashlib.sha256()
    for line in found:
        ids.update(("".join(f"{i} " for i in line.ids) + "\n").encode())
    print(json.dumps({"seconds": best, "bytes": sum(len(line.encode()) for line in lines),
                      "tokens": sum(len(line.ids) for line in found), "ids": ids.hexdigest()}))


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    else:
        encode(sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 3)
