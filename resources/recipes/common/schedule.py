# SPDX-License-Identifier: Apache-2.0
"""The experiment's learning rate: linear warm-up from 0, then cosine, linear or constant to peak * final_ratio."""
import math


def learning_rate(train, step):
    """For step 1, 2, ..., train.steps."""
    peak, warmup = train["learning_rate"], train["warmup_steps"]
    if step <= warmup:
        return peak * step / warmup
    done = min(1.0, max(0.0, (step - warmup) / max(1.0, train["steps"] - warmup)))
    share = {"cosine": 0.5 * (1 + math.cos(math.pi * done)), "linear": 1 - done, "constant": 1.0}[train["schedule"]]
    return peak * (train["final_ratio"] + (1 - train["final_ratio"]) * share)


def table(train, steps):
    """Of all steps: what a compiled program looks it up in."""
    return [learning_rate(train, s + 1) for s in range(steps)]
