# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the rows of the fine-tuning workloads to files that both sides read:
{"batches": [[{"ids": [...], "loss_from": n}, ...], ...]}; tokens from `loss_from` on carry loss."""

import json
import random

from side import random_ids

BATCH = 4


def write(path, batches):
    path.write_text(json.dumps({"batches": batches}), encoding="utf-8")


def equal_rows(path, vocab, length, loss_from):
    ids = random_ids(BATCH * length, vocab)
    write(path, [[{"ids": ids[i * length : (i + 1) * length], "loss_from": loss_from} for i in range(BATCH)]])


def question_rows(path, source, tokenizer_file, batches, loss, longest=1024):
    """GSM8K questions and answers in a fixed random order, with loss on the answers or on every token."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    with open(source, encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    rows = []
    for record in random.Random(1).sample(records, batches * BATCH):
        question = tokenizer.encode(record["question"] + "\n").ids
        answer = tokenizer.encode(record["answer"], add_special_tokens=False).ids
        rows.append({"ids": (question + answer)[:longest], "loss_from": len(question) if loss == "answers" else 0})
    write(path, [rows[i : i + BATCH] for i in range(0, len(rows), BATCH)])
