# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes resources/hardware/processors.json: the engine's rates for each class of processors, from benchmarks/results.

  python3 scripts/peers/processors.py

Takes the newest measurement of each work of the 270M shape on two threads. Plans of machines that were not measured
use them, with a wide interval.
"""
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORKS = {"lora-all": ("train", "bf16", 4, 512), "lora-all-f32": ("train", "f32", 4, 512),
         "prefill": ("prefill", "bf16", 1, 512), "prefill-f32": ("prefill", "f32", 1, 512),
         "decode-bf16-1": ("decode", "bf16", 1, 40), "decode-bf16-16": ("decode", "bf16", 16, 40),
         "decode-int8-1": ("decode", "int8", 1, 40), "decode-int8-16": ("decode", "int8", 16, 40)}  # fmt: skip
# What the engine's kernels take beside multiply-adds (core/plan/request/efficiencies.h, EngineCosts), from the profiles
# of finished runs (summary.profile), of bench's decode steps and of the step times of meshes of 2 to 16 virtual devices.
COSTS = {"output_columns": 34, "query_keys": 50, "query_ops": 9400, "gathers": 2.4e9, "call_s": 8e-6,
         "cached_kv_bytes": 1e6, "cached_kv_reads": 0.7, "uncached_kv_bytes": 1.5e7, "uncached_kv_reads": 0.31,
         "source": "profiles of steps of gemma3-270m and of the shipped model on an AMD EPYC (family 25, model 17), 2026-11-29"}  # fmt: skip
NATIVE = "avx512_bf16"  # of the processor that was measured without a limit last


def rates(instructions, results):
    figures, machine, dates = {}, None, set()
    for result in results:  # oldest first
        for work in result["works"]:
            if work["work"] in WORKS and "ours" in work and result["machine"]["threads"] == 2:
                kind, weights, rows, length = WORKS[work["work"]]
                tokens = rows if kind == "decode" else rows * length
                figures[work["work"]] = {"work": kind, "weights": weights, "rows": rows, "len": length,
                                         "seconds": tokens / work["ours"]["tokens_per_s"]}  # fmt: skip
                machine = result["machine"]
                dates.add(result["date"])
    bf16 = {"bf16_flops": machine["bf16_flops"]} if machine["bf16_flops"] else {}
    return {"instructions": instructions, "model": "gemma3-270m", "threads": 2, "date": max(dates),
            "source": f"not measured here; an {machine['cpu']} with {instructions}", "f32_flops": machine["f32_flops"], **bf16,
            "read_bytes_per_s": machine["dram_read_bytes_per_s"],
            "figures": [figures[work] for work in WORKS if work in figures]}  # fmt: skip


def main():
    by_class = {}
    for file in sorted((ROOT / "benchmarks" / "results").glob("*-270m.json")):
        result = json.loads(file.read_text(encoding="utf-8"))
        name = NATIVE if result["class"] == "native" and "25, model 17" in result["machine"]["cpu"] else result["class"]
        by_class.setdefault(name, []).append(result)
    machines = [rates(name, by_class[name]) for name in ("avx2", "avx512", "avx512_bf16", "amx") if name in by_class]
    text = json.dumps({"schema": 1, "costs": COSTS, "machines": machines}, indent=1)
    (ROOT / "resources" / "hardware" / "processors.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
