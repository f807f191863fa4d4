#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Derives the host's time of TensorRT-LLM's steps with prompts from published cells that are not held out.

    scripts/tensorrt-llm-steps.py silicon_sample.csv

The file is aic-core/src/aiconfigurator_core/systems/silicon_sample.csv of ai-dynamo/aiconfigurator 095f58a. A cell may be
used if the first hex digit of the SHA-256 of "ACT: " and its id is even, the rule of
resources/hardware/measurements.json; the others are dropped before their values are read.

Of a closed loop of c users whose requests take T, of which they decode for D, n = c D / T sequences decode at once, and
f = (c - 1) D / T / (answer - 1) of the steps have the prompt of another user. Each time per token is then
    (1 - f) a + f S + n b
with a step of the devices a and seconds per sequence b of a model and number of GPUs, and the host's step S, seconds per
layer times layers. Prompts of 1,024 tokens on 4 and 8 GPUs keep the devices for less time than the host, so that S does
not depend on the number of GPUs. Relative errors are minimised.
"""
import csv
import hashlib
import re
import sys

LAYERS = {"Qwen/Qwen3-32B": 64, "meta-llama/Llama-3.1-8B-Instruct": 32}


def is_held_out(row):
    return int(hashlib.sha256(f"ACT: {row['id']}".encode()).hexdigest()[0], 16) % 2 == 1


def cells(path, users):
    for row in csv.DictReader(open(path)):
        if (row["backend"], row["backend_version"], row["system"]) != ("trtllm", "1.0.0rc3", "h100_sxm"):
            continue
        if row["model_path"] not in LAYERS or row["isl"] != "1024" or row["tp_size"] not in ("4", "8") or is_held_out(row):
            continue
        concurrency = int(re.search(r"silicon_concurrency=(\d+)", row["silicon_data_source"]).group(1))
        if concurrency <= users:
            yield (row["model_path"], int(row["tp_size"]), int(row["osl"]), concurrency, float(row["silicon_ttft_ms"]),
                   float(row["silicon_tpot_ms"]))


def solve(equations, values):
    """Least squares by the normal equations."""
    size = len(equations[0])
    m = [[sum(e[i] * e[j] for e in equations) for j in range(size)] + [sum(e[i] * v for e, v in zip(equations, values))]
         for i in range(size)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(m[k][i]))
        m[i], m[pivot] = m[pivot], m[i]
        for k in range(size):
            if k != i:
                factor = m[k][i] / m[i][i]
                m[k] = [x - factor * y for x, y in zip(m[k], m[i])]
    return [m[i][size] / m[i][i] for i in range(size)]


def fit(rows):
    """Milliseconds per layer, and the relative error of every row."""
    kinds = sorted({row[:2] for row in rows})
    equations = []
    for model, gpus, answer, users, ttft, tpot in rows:
        decoding = (answer - 1) * tpot
        share = decoding / (ttft + decoding)
        with_prompt = (users - 1) * share / (answer - 1)
        equation = [0.0] * (2 * len(kinds) + 1)
        kind = kinds.index((model, gpus))
        equation[2 * kind : 2 * kind + 2] = 1 - with_prompt, users * share
        equation[-1] = with_prompt * LAYERS[model]
        equations.append([x / tpot for x in equation])
    found = solve(equations, [1.0] * len(rows))
    return found[-1], [sum(x * y for x, y in zip(e, found)) - 1 for e in equations]


def main():
    rows = sorted(cells(sys.argv[1], 64))
    per_layer, errors = fit(rows)
    for (model, gpus, answer, users, ttft, tpot), error in zip(rows, errors):
        print(f"{model} on {gpus} H100, 1,024/{answer}, {users} users: TTFT {ttft:.0f} ms, TPOT {tpot:.2f} ms ({error:+.1%})")
    print(f"{len(rows)} cells: {per_layer:.3f} ms a layer, mean error of the TPOT "
          f"{sum(abs(e) for e in errors) / len(errors):.1%}")
    for model in LAYERS:
        own = [row for row in rows if row[0] == model]
        print(f"{model} alone, {len(own)} cells: {fit(own)[0]:.3f} ms a layer")


main()
