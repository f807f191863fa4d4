# SPDX-License-Identifier: Apache-2.0
"""Answers to held-out prompts, generated and scored as Meshwright's engine does: greedy decoding until an end marker; an
answer is right if its text, without special tokens and white space around it, equals the expected one. data/answers.json
has the prompts as tokens; tokenizer/ (or the model's folder) decodes the answers and is saved with the adapter."""
import json
import pathlib

import numpy as np

import events


def load_tokenizer(folder, model):
    """The experiment's tokenizer, else the one of the model; None if neither has one."""
    import transformers
    for place in (pathlib.Path(folder) / "tokenizer", pathlib.Path(model or "/nonexistent")):
        if any((place / name).exists() for name in ("tokenizer.json", "tokenizer.model")):
            return transformers.AutoTokenizer.from_pretrained(str(place))
    try:
        return transformers.AutoTokenizer.from_pretrained(model) if model and not pathlib.Path(model).exists() else None
    except (OSError, ValueError) as error:
        events.log(f"no tokenizer for {model}: {error}", "warning")
        return None


def save_tokenizer(tokenizer, folder):
    if tokenizer is not None:
        tokenizer.save_pretrained(str(folder))


class Answers:
    """Prompts of the held-out rows and their scores. `next_tokens(batch, last)` returns for each row the most likely
    token after position last[row]; `batch` has ids, positions and segments [rows, len], always of one shape."""

    def __init__(self, folder, settings, tokenizer, rows, next_tokens):
        self.train, self.tokenizer, self.next_tokens = settings["train"], tokenizer, next_tokens
        file = pathlib.Path(folder) / "data" / "answers.json"
        found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else rows.answers
        self.prompts, self.stops, self.pad = found["prompts"], set(found["stop_ids"]), rows.pad
        if self.prompts and (tokenizer is None or rows.foreign):
            why = "no tokenizer was found" if tokenizer is None else "the rows are of another tokenizer"
            events.log(f"held-out prompts are not answered: {why}")
            self.prompts = []
        self.asked = self.right_before = 0
        length = max((len(p["ids"]) + p["max_new"] for p in self.prompts), default=0)
        self.length = -(-length // rows.multiple) * rows.multiple

    def _generate(self, prompts):
        """One list of new tokens for each prompt."""
        count = self.train["batch"]
        ids = np.full((count, self.length), self.pad, np.int32)
        segments = np.full((count, self.length), -1, np.int32)
        positions = np.zeros((count, self.length), np.int32)
        positions[:len(prompts)] = np.arange(self.length)
        new, last = [[] for _ in prompts], np.zeros(count, np.int32)
        for r, p in enumerate(prompts):
            ids[r, :len(p["ids"])] = p["ids"]
            last[r] = len(p["ids"]) - 1
        unfinished = [r for r, p in enumerate(prompts) if p["max_new"] > 0]
        while unfinished:
            for r in range(len(prompts)):
                segments[r, :last[r] + 1] = 0
            tokens = np.asarray(self.next_tokens({"ids": ids, "positions": positions, "segments": segments}, last))
            for r in list(unfinished):
                token = int(tokens[r])
                if token in self.stops:
                    unfinished.remove(r)
                    continue
                new[r].append(token)
                last[r] += 1
                ids[r, last[r]] = token
                if len(new[r]) >= prompts[r]["max_new"]:
                    unfinished.remove(r)
        return new

    def _ask(self, step, prompts, title=""):
        right = done = 0
        for first in range(0, len(prompts), self.train["batch"]):
            some = prompts[first:first + self.train["batch"]]
            for prompt, ids in zip(some, self._generate(some)):
                text = self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
                text = text.strip(" \t\r\n")
                good = text == prompt["expected"]
                right, done = right + good, done + 1
                if title:
                    events.emit("progress", phase=title, done=done, total=len(prompts))
                events.emit("sample", step=int(step), prompt=prompt["prompt"], text=text, expected=prompt["expected"],
                            verdict="right" if good else "wrong")
        return right, done

    def score(self, step):
        """Answers train.answers prompts. Returns how many were right, and how many there were."""
        right, asked = self._ask(step, self.prompts[:self.train["answers"]], "answering held-out prompts")
        if asked:
            events.metric("eval/answers_right", step, right / asked)
            events.log(f"{right} of {asked} held-out prompts answered correctly after step {step}")
        return right, asked

    def before(self):
        self.right_before, self.asked = self.score(0)
        self.samples(0)

    def samples(self, step):
        if self.train["sample_every"] > 0:
            self._ask(step, self.prompts[:self.train["sample_prompts"]])

    def after_step(self, step, steps):
        if step < steps and self.train["sample_every"] > 0 and step % self.train["sample_every"] == 0:
            self.samples(step)

    def after(self, step):
        """Returns the summary of the run's end."""
        right, asked = self.score(step)
        self.samples(step)
        if not asked:
            return {}
        scores = {"asked": asked, "tuned_right": right}
        if self.asked:  # not after a resumption
            scores["base_right"] = self.right_before
        return {"answers": scores}
