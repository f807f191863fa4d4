#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the newest results of each work of scripts/peers.sh in benchmarks/results/ as the tables of the manual's chapter 3: one for each
class of processor, shape, machine and number of threads.

    table.py [--results FOLDER] [--summary]

--summary prints README's table instead: the lowest ratio, which is that to the fastest peer, of each work on two threads.
"""

import argparse
import json
from pathlib import Path

from bars import bar

ROOT = Path(__file__).resolve().parents[2]
CLASSES = {"avx2": "Held to AVX2", "avx512": "Held to AVX-512 without BF16", "avx512_vnni": "Held to AVX-512 VNNI without BF16",
           "avx512_bf16": "Held to AVX-512 BF16",
           "amx": "With AMX", "native": "All of the processor's instructions"}


def mib(count):
    return f"{round(count / 2**20):,}"


def speed(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def shown_ways(pattern):
    """A regular expression in a cell of a table, where a bar would end the cell."""
    return " or ".join(f"'{part}'" for part in pattern.split("|"))


def reached(results, work, peer, ratio):
    least = bar(results, work, peer)
    return "" if least is None else f"{least:g}, {'reached' if ratio >= least else '**missed**'}"


def rounds(results):
    counts = {work["ours"]["rounds"] for work in results["works"] if "ours" in work}
    if counts == {1}:
        return "One round."
    span = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else f"{max(counts)}"
    return f"Medians of {span} rounds."


def table(results):
    machine, versions = results["machine"], results["versions"]
    bf16 = f", bf16 {machine['bf16_flops'] / 1e9:,.0f} GFLOP/s" if machine["bf16_flops"] else ""
    yield f"{CLASSES[results['class']]}, Gemma 3 {results['shape'].upper()} shape, {results['date']}, {machine['cpu']}, threads: {machine['threads']}"
    yield f"(f32 {machine['f32_flops'] / 1e9:,.0f} GFLOP/s{bf16}, reads {machine['dram_read_bytes_per_s'] / 1e9:.0f} GB/s). {rounds(results)}"
    yield "Versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()) + "."
    yield ""
    yield "| Work | Ours, tokens/s | Peer, tokens/s | Speed ratio | Least | CPU time, theirs / ours | Peak memory, MiB |"
    yield "|---|---|---|---|---|---|---|"
    for work in results["works"]:
        title = work["title"] + (f" (of the peers' ways only those that match {shown_ways(work['ways'])})" if "ways" in work else "")
        for peer, theirs in work.get("peers", {}).items():
            ours, ratio = work["ours"], theirs["speed_ratio"]
            yield (f"| {title} | {speed(ours['tokens_per_s'])} | {peer} {theirs['way']}: {speed(theirs['tokens_per_s'])} | {ratio:.2f} | "
                   f"{reached(results, work['work'], peer, ratio)} | {theirs['cpu_ratio']:.2f} | "
                   f"{mib(ours['peak_bytes'])} / {mib(theirs['peak_bytes'])} |")  # fmt: skip
            title = ""
    yield ""


SUMMARY = (("prefill", "Prefill of 512, bf16"), ("prefill-f32", "f32"), ("lora-all", "LoRA step, 4 x 512, bf16"), ("lora-all-f32", "f32"), ("decode-bf16-1", "Decode bf16, 1 row"),
           ("decode-bf16-16", "bf16, 16 rows"), ("decode-int8-1", "int8, 1 row"), ("decode-int8-16", "int8, 16 rows"))  # fmt: skip


def fastest_peer(works, name):
    """Ratio and name, as in "1.35 PyTorch"; empty for a work without a peer; a dagger where not all ways were measured."""
    ratios = [(theirs["speed_ratio"], peer, " \u2020" if "ways" in work else "")
              for work in works if work["work"] == name for peer, theirs in work.get("peers", {}).items()]  # fmt: skip
    return "{:.2f} {}{}".format(*min(ratios)) if ratios else ""


def newest_works(results):
    """Results of one kind, sorted by date, without the works that later ones have."""
    kept, seen = [], set()
    for one in reversed(results):
        works = [work for work in one["works"] if work["work"] not in seen]
        seen |= {work["work"] for work in works}
        if works:
            kept.insert(0, one | {"works": works})
    return kept


def summary(kinds):
    """One row for each class of processor, shape and machine on which every work was measured."""
    yield "| Two threads; Gemma 3 270M shape where no other is named | " + " | ".join(title for _, title in SUMMARY) + " |"
    yield "|---" * (len(SUMMARY) + 1) + "|"
    names = {name for name, _ in SUMMARY}
    for those in kinds:
        shown = [one for one in those if any(work["work"] in names for work in one["works"])]
        if shown and shown[0]["machine"]["threads"] == 2:
            first = shown[0]
            shape = "" if first["shape"] == "270m" else f"{first['shape'].upper()} shape, "
            dates = " and ".join(one["date"] for one in shown)
            works = [work for one in shown for work in one["works"]]
            row = [f"{CLASSES[first['class']]}, {shape}{first['machine']['cpu']}, {dates}"]
            cells = [fastest_peer(works, name) for name, _ in SUMMARY]
            if all(cells):
                yield "| " + " | ".join(row + cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks/results")
    parser.add_argument("--summary", action="store_true", help="README's table")
    args = parser.parse_args()
    files = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(args.results.glob("*.json"))]
    kinds = {}
    for one in sorted(files, key=lambda one: one["date"]):
        kinds.setdefault((one["class"], one["shape"], one["machine"]["cpu"], one["machine"]["threads"]), []).append(one)
    kinds = [newest_works(those) for those in kinds.values()]
    if args.summary:
        print("\n".join(summary(kinds)))
        return
    for results in (one for those in kinds for one in those):
        print("\n".join(table(results)))


if __name__ == "__main__":
    main()
