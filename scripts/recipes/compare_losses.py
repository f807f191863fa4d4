# SPDX-License-Identifier: GPL-3.0-or-later
"""Loss curves of two runs, printed as event lines: the largest relative difference of any step, held to a bar.

    python scripts/recipes/compare_losses.py OURS.jsonl THEIRS.jsonl STEPS BAR
"""
import json
import sys


def curve(path, name):
    values = {}
    for line in open(path, encoding="utf-8"):
        event = json.loads(line)
        if event.get("event") == "metric" and event["name"] == name:
            values[event["step"]] = event["value"]
    return values


ours, theirs, steps, bar = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
failed = False
for name, limit in (("train/loss", bar), ("eval/loss", bar), ("train/grad_norm", None)):
    a, b = curve(ours, name), curve(theirs, name)
    both = sorted(set(a) & set(b))
    if name == "train/loss" and both != list(range(1, steps + 1)):
        sys.exit(f"{theirs}: steps {both[:3]}..., not 1 to {steps}")
    worst = max(both, key=lambda s: abs(a[s] - b[s]) / max(1e-12, abs(a[s])))
    difference = abs(a[worst] - b[worst]) / max(1e-12, abs(a[worst]))
    print(f"  {name}: at most {100 * difference:.2g} % apart (step {worst}: {a[worst]:.6g} and {b[worst]:.6g})")
    failed |= limit is not None and difference > limit
sys.exit(1 if failed else 0)
