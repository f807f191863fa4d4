# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the losses and gradient norms of two runs, given as event lines: the largest relative difference of a step must
not exceed BAR. WHY_NORMS_DIFFER skips the check of the norms. Prints a row of check-recipes.sh's table.

    python scripts/recipes/compare_losses.py NAME OURS.jsonl THEIRS.jsonl STEPS BAR [WHY_NORMS_DIFFER]
"""
import json
import math
import sys


def curve(path, name):
    values = {}
    for line in open(path, encoding="utf-8"):
        event = json.loads(line)
        if event.get("event") == "metric" and event["name"] == name:
            values[event["step"]] = event["value"]
    return values


def answers(path):
    """Text of the last answer to each prompt."""
    found = {}
    for line in open(path, encoding="utf-8"):
        event = json.loads(line)
        if event.get("event") == "sample":
            found[event["prompt"]] = event["text"]
    return found


def apart(a, b):
    """Returns the largest relative difference and its step; None if a value is missing or not finite."""
    both = sorted(set(a) & set(b))
    if not both or any(a[s] is None or b[s] is None for s in both):
        return None
    step = max(both, key=lambda s: abs(a[s] - b[s]) / max(1e-12, abs(a[s])))
    return abs(a[step] - b[step]) / max(1e-12, abs(a[step])), step


name, ours, theirs, steps, bar = *sys.argv[1:4], int(sys.argv[4]), float(sys.argv[5])
why = " ".join(sys.argv[6:])
bad, cells = [], []
for metric, limit in (("train/loss", bar), ("eval/loss", bar), ("train/grad_norm", math.inf if why else bar)):
    a, b = curve(ours, metric), curve(theirs, metric)
    if metric != "eval/loss" and not set(range(1, steps + 1)) <= set(a) & set(b):
        bad.append(f"{metric}: steps 1 to {steps} are incomplete")
    found = apart(a, b)
    cells.append("none in common" if found is None else f"{100 * found[0]:.2g} % (step {found[1]})")
    if found is None or not found[0] <= limit:
        bad.append(f"{metric}: {cells[-1]}")
mine, other = answers(ours), answers(theirs)
both = sorted(set(mine) & set(other))
cells.append(f"{sum(mine[p] == other[p] for p in both)} of {len(both)}")
if not both:
    bad.append("no prompt was answered by both")
print("\t".join([name, *cells, "BAD: " + "; ".join(bad) if bad else "ok; norms: " + why if why else "ok"]))
sys.exit(1 if bad else 0)
