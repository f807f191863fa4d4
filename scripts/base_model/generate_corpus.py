#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the pretraining text of the base model: JSON lines {"text": ...}, or plain text with a blank line between documents.

Deterministic: the same seed and size give the same bytes. Documents never repeat word for word.
"""
import argparse
import hashlib
import json
import random
import sys

from facts import facts_document
from stories import STORIES
from tales import TALES

FACTS_SHARE = 0.4  # of the documents


def documents(seed):
    rng = random.Random(seed)
    makers, weights = zip(*STORIES, *TALES)
    seen = set()
    while True:
        maker = facts_document if rng.random() < FACTS_SHARE else rng.choices(makers, weights)[0]
        text = maker(rng)
        key = hashlib.blake2b(text.encode(), digest_size=8).digest()
        if key in seen and len(text) > 60:
            continue
        seen.add(key)
        yield text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=("jsonl", "text"), default="jsonl")
    parser.add_argument("--out", default="-")
    args = parser.parse_args()
    out = sys.stdout if args.out == "-" else open(args.out, "w", encoding="utf-8", newline="\n")
    left = args.megabytes * 1e6
    for text in documents(args.seed):
        out.write(json.dumps({"text": text}) + "\n" if args.format == "jsonl" else text + "\n\n")
        left -= len(text)
        if left <= 0:
            break
    if out is not sys.stdout:
        out.close()


if __name__ == "__main__":
    main()
