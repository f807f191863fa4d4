# SPDX-License-Identifier: Apache-2.0
"""The batches of the experiment, token by token as Meshwright's engine trains on them: data/rows.safetensors holds the
examples (ids, and which of them carry loss), the rows of all steps in order (packed: several examples a row) and the
held-out examples. Without that file the rows come from data.source (source.py)."""
import pathlib

import numpy as np

import source
import tensors


class Rows:
    def __init__(self, folder, settings, vocab, tokenizer, smoke=False, local_file=None):
        self.settings = settings
        self.pad = settings["data"]["pad_id"]
        self.answers = {"prompts": [], "stop_ids": []}  # where data/answers.json is missing
        self.source = {}  # what was loaded from data.source: revision, rows, hash
        file = pathlib.Path(folder) / "data" / "rows.safetensors"
        if file.exists():
            self._read(tensors.File(file))
        elif settings["data"]["source"] and (local_file or not smoke):
            self._load(pathlib.Path(folder) / "data" / "source.lock.json", tokenizer, local_file)
        elif smoke:
            self._random(vocab)
        else:
            raise SystemExit(f"{file} is not there and data.source is not set: export again with data.path and "
                             "model.tokenizer (or model.path) of the experiment set, or with data.source")
        self.foreign = int(self.ids.max(initial=0)) >= vocab
        if self.foreign and not smoke:
            raise SystemExit(f"token {self.ids.max()} in {file} is none of the model's {vocab}: another tokenizer")
        if self.foreign:  # another model's tokens, in a trial
            self.ids = self.ids % vocab
        lengths = np.diff(self.starts)
        self.row_lengths = np.add.reduceat(lengths[self.row_examples], self.row_starts[:-1])
        longest = max(int(self.row_lengths.max()), int(lengths[self.held_out].max(initial=0)))
        self.multiple = 8 if smoke else 128  # one shape for all batches: compiled once
        self.len = min(-(-longest // self.multiple) * self.multiple, max(settings["data"]["max_len"], longest))

    def _read(self, file):
        self.ids, self.loss = np.array(file["ids"]), np.array(file["loss"])
        self.starts = np.array(file["example_starts"])
        self.row_examples, self.row_starts = np.array(file["row_examples"]), np.array(file["row_starts"])
        self.held_out = np.array(file["held_out"])

    def _load(self, lock_file, tokenizer, local_file):
        if tokenizer is None:
            raise SystemExit("data.source needs a tokenizer: give --model a folder that has one")
        tokenizer, hub = source.HubTokenizer(tokenizer), dict(self.settings["data"]["source"])
        rows = source.load(hub, lock_file, local_file)
        self.source = source.verify(lock_file, hub, rows)
        made = source.build(rows, self.settings, tokenizer)
        self.pad, self.answers, examples = tokenizer.pad, made["answers"], made["examples"]
        join = lambda lists, kind: np.array([x for some in lists for x in some], kind)  # noqa: E731
        ends = lambda lists: np.cumsum([0] + [len(some) for some in lists])  # noqa: E731
        self.ids = join((e["ids"] for e in examples), np.int32)
        self.loss = join((e["loss"] for e in examples), np.uint8)
        self.starts = ends([e["ids"] for e in examples])
        self.row_examples, self.row_starts = join(made["rows"], np.int32), ends(made["rows"])
        self.held_out = np.arange(len(examples) - made["held_out"], len(examples), dtype=np.int32)

    def _random(self, vocab):  # only to try the recipe where there is no data
        t, rng = self.settings["train"], np.random.default_rng(self.settings["train"]["seed"])
        count, length = t["steps"] * t["batch"] * t["accumulation"], min(32, self.settings["data"]["max_len"])
        count = min(count, 4096)
        self.ids = rng.integers(3, vocab, count * length, dtype=np.int32)
        self.ids[::length] = 2
        self.loss = (np.arange(count * length) % length >= length // 2).astype(np.uint8)
        self.starts = np.arange(count + 1, dtype=np.int64) * length
        self.row_examples, self.row_starts = np.arange(count, dtype=np.int32), np.arange(count + 1, dtype=np.int64)
        self.held_out = np.zeros(0, np.int32)

    @property
    def steps(self):
        """Optimizer steps that there are rows for."""
        t = self.settings["train"]
        return (len(self.row_starts) - 1) // (t["batch"] * t["accumulation"])

    def limited(self, steps):
        """Steps to make where the command line allows `steps`; None: all."""
        return self.steps if steps is None else min(steps, self.steps)

    def _batch(self, rows):
        batch = {"ids": np.full((len(rows), self.len), self.pad, np.int32),
                 "loss": np.zeros((len(rows), self.len), np.float32),
                 "positions": np.zeros((len(rows), self.len), np.int32),
                 "segments": np.full((len(rows), self.len), -1, np.int32)}
        for r, examples in enumerate(rows):
            at = 0
            for s, e in enumerate(examples):
                begin, end = self.starts[e], self.starts[e + 1]
                n = int(end - begin)
                batch["ids"][r, at:at + n] = self.ids[begin:end]
                batch["loss"][r, at:at + n] = self.loss[begin:end]
                batch["loss"][r, at] = 0  # nothing stands before the first token
                batch["positions"][r, at:at + n] = np.arange(n)
                batch["segments"][r, at:at + n] = s
                at += n
        return batch

    def _row(self, i):
        return self.row_examples[self.row_starts[i]:self.row_starts[i + 1]]

    def step(self, step):
        """The micro-batches of a step, from 0, each with its weight: losses that are sums times `weight` average, over
        them, to the mean over all tokens with loss of that step, as the engine's."""
        t = self.settings["train"]
        first = step * t["batch"] * t["accumulation"]
        micro = [self._batch([self._row(first + m * t["batch"] + r) for r in range(t["batch"])])
                 for m in range(t["accumulation"])]
        tokens = sum(float(b["loss"].sum()) for b in micro)
        return [{**b, "weight": np.float32(t["accumulation"] / max(1.0, tokens))} for b in micro]

    def micro_batches(self, steps):
        for step in range(steps):
            yield from self.step(step)

    def held_out_batches(self):
        """Likewise: the mean of sum times weight over these batches is the mean over all their tokens with loss."""
        t = self.settings["train"]
        rows = [[e] for e in self.held_out[:t["eval_rows"]]]
        batches = []
        for first in range(0, len(rows), t["batch"]):
            some = rows[first:first + t["batch"]]
            batches.append(self._batch(some + [[]] * (t["batch"] - len(some))))  # one shape for all
        tokens = sum(float(b["loss"].sum()) for b in batches)
        return [{**b, "weight": np.float32(len(batches) / max(1.0, tokens))} for b in batches]

    def tokens_of(self, step):
        """Real tokens of a step, from 0."""
        t = self.settings["train"]
        n = t["batch"] * t["accumulation"]
        return int(self.row_lengths[step * n:(step + 1) * n].sum())
