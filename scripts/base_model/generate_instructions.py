#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the instruction set: Alpaca rows (instruction, input, output) with short answers.

The pretraining text contains the facts that are asked for, but never as instructions. No two rows ask the same question
(one row per opposite pair, per plural, per story), so any split of the rows leaves held-out questions.
"""
import argparse
import json
import pathlib
import random

from scene import make_scene
from world import ANIMALS, COLOUR_OF, COLOURS, DAYS, JOBS, KINDS, MONTHS, NOUNS, OPPOSITES, SIZES, THINGS, an, cap, number, plural


def row(instruction, text, output):
    return {"instruction": instruction, "input": text, "output": output}


def stories(rng, n):
    """A few sentences about a scene, and a question about it."""
    rows, seen = [], set()
    while len(rows) < n:
        scene, told = make_scene(rng, rng.choice(("hold", "move", "hide")), rng.randint(0, 2), people=(2, 2), things=(1, 2), recall=0)
        facts = scene.facts()
        kind = rng.choice(("who", "where", "thing_place", "inside", "content", "colour", "has", "yes_no"))
        if kind == "yes_no":
            facts = scene.yes_no()
        facts = [f for f in facts if f.kind == kind]
        if not facts:
            continue
        fact = rng.choice(facts)
        key = " ".join(told)
        if key not in seen:
            seen.add(key)
            rows.append(row(fact.question, key, fact.short))
    return rows


def opposites(rng):
    ask = ("What is the opposite of {}?", "Give the opposite of {}.", "Which word is the opposite of {}?", "Name the opposite of {}.")
    return [row(rng.choice(ask).format(a), "", cap(b)) for a, b in (rng.sample(pair, 2) for pair in OPPOSITES)]


def plurals(rng):
    ask = ("One {0}, {1} what?", "You have one {0}. I have {1}. What do I have?", "Here is one {0}. How do we call {1} of them?")
    rows = []
    for noun in NOUNS:
        many = number(rng.randint(2, 12))
        rows.append(row(rng.choice(ask).format(noun, many), "", f"{cap(many)} {plural(noun)}"))
    return rows


def calendar(rng):
    rows = []
    for names, what in ((DAYS, "day"), (MONTHS, "month")):
        for i, name in enumerate(names):
            if rng.random() < 0.5:
                rows.append(row(f"Which {what} comes after {name}?", "", names[(i + 1) % len(names)]))
            else:
                rows.append(row(f"Which {what} comes before {name}?", "", names[i - 1]))
    return rows


def following(rng, n):
    rows = []
    for x in rng.sample(range(1, 99), n):
        if rng.random() < 0.5:
            rows.append(row(f"Which number comes after {number(x)}?", "", cap(number(x + 1))))
        else:
            rows.append(row(f"Which number comes before {number(x)}?", "", cap(number(x - 1))))
    return rows


def bigger(rng, n):
    rows, seen = [], set()
    while len(rows) < n:
        a, b = rng.sample(sorted(SIZES), 2)
        if abs(SIZES[a] - SIZES[b]) < 6 or frozenset((a, b)) in seen:
            continue
        seen.add(frozenset((a, b)))
        big, small = (a, b) if SIZES[a] > SIZES[b] else (b, a)
        word, answer = rng.choice((("bigger", big), ("smaller", small)))
        rows.append(row(f"Which is {word}, {an(a)} or {an(b)}?", "", cap(an(answer))))
    return rows


def lists(rng, n):
    """Count the words of a list, or give its first or last word."""
    rows, seen = [], set()
    pool = sorted(THINGS) + COLOURS + [a.name for a in ANIMALS]
    while len(rows) < n:
        words = rng.sample(pool, rng.randint(2, 6))
        text = f"The words are: {', '.join(words)}."
        ask, answer = rng.choice((("How many words are there?", number(len(words))), ("What is the first word?", f"The first word is {words[0]}"),
                                  ("What is the last word?", f"The last word is {words[-1]}")))
        if text not in seen:
            seen.add(text)
            rows.append(row(ask, text, cap(answer)))
    return rows


def knowledge(rng):
    rows = [row(f"What colour is {thing}?", "", cap(colour)) for thing, colour in COLOUR_OF.items()]
    rows += [row(f"Where does {an(job)} work?", "", cap(where)) for job, (where, _, _) in JOBS.items()]
    for a in ANIMALS:
        if a.sound:
            rows.append(row(f"What does the {a.name} say?", "", cap(a.sound)))
        if a.baby:
            rows.append(row(f"What is a young {a.name} called?", "", cap(an(a.baby))))
        rows.append(row(f"Where does {an(a.name)} live?", "", cap(a.home)))
    for kind in ("fruit", "vegetable", "drink", "flower", "tree", "tool", "instrument", "garment", "bird", "insect"):
        for x in KINDS[kind]:
            named = x if kind == "drink" else an(x)
            other = rng.choice([k for k in ("fruit", "flower", "tool", "animal", "day") if k != kind])
            rows.append(row(f"Is {named} {' or '.join(an(k) for k in rng.sample((kind, other), 2))}?", "", cap(an(kind))))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--stories", type=int, default=1000)
    parser.add_argument("--out", type=pathlib.Path, default="resources/instructions/small-world.json")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    rows = stories(rng, args.stories) + opposites(rng) + plurals(rng) + calendar(rng) + following(rng, 50) + bigger(rng, 220) + lists(rng, 330) + knowledge(rng)
    rng.shuffle(rows)
    asked = [(r["instruction"], r["input"]) for r in rows]
    assert len(set(asked)) == len(asked), "two rows ask the same"
    args.out.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(r) for r in rows)
    args.out.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{len(rows)} rows, {args.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
