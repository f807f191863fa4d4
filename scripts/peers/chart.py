#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws the results of scripts/peers.sh in benchmarks/results/ as resources/manual/images/peers.svg: Meshwright's speed as a
multiple of each peer's fastest way, one part for each class of processor, shape, machine and number of threads. Circles compare wall
times and squares CPU times; they are filled for the newest results of a part and open for older ones.

    chart.py [--results FOLDER] [--out FILE.svg]
"""

import argparse
import json
import math
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLOURS = {"llama.cpp": "#d9730d", "PyTorch": "#1f6feb", "OpenVINO": "#1a7f37"}
WIDTH, LEFT, RIGHT, ROW = 760, 320, 30, 20
LEAST, MOST = 0.25, 8  # of the axis


def at(ratio):
    share = math.log(min(max(ratio, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def text(x, y, content, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(content)}</text>'


def part(results, top):
    """Draws one class and shape: results in order of their dates. Returns the lines and where they end."""
    newest = results[-1]
    titles = {work["work"]: work["title"] for one in results for work in one["works"] if "failed" not in work}
    machine = newest["machine"]
    out = [text(10, top, f"{newest['class']}, Gemma 3 {newest['shape']} shape, {machine['cpu']}, threads: {machine['threads']}, {newest['date']}",
                ' font-weight="bold"')]  # fmt: skip
    bottom = top + 8 + ROW * len(titles)
    ratio = LEAST
    while ratio <= MOST:
        colour = "#555" if ratio == 1 else "#ddd"
        out.append(f'<line x1="{at(ratio):.1f}" x2="{at(ratio):.1f}" y1="{top + 8}" y2="{bottom}" stroke="{colour}"/>')
        out.append(text(at(ratio), bottom + 14, f"{ratio:g}x", ' text-anchor="middle"'))
        ratio *= 2
    for row, (name, title) in enumerate(titles.items()):
        y = top + 8 + ROW * (row + 0.5)
        out.append(text(10, y + 4, title))
        for one in results:
            for work in one["works"]:
                for peer, figures in work.get("peers", {}).items() if work["work"] == name else ():
                    paint = f'fill="{COLOURS[peer] if one is newest else "white"}" stroke="{COLOURS[peer]}"'
                    label = f"{one['date']}: {figures['speed_ratio']:.2f} times {peer} ({figures['way']})"
                    out.append(f'<circle cx="{at(figures["speed_ratio"]):.1f}" cy="{y:.1f}" r="4.5" {paint}>'
                               f"<title>{escape(label)}</title></circle>")  # fmt: skip
                    if "cpu_ratio" in figures:
                        label = f"{one['date']}: {peer} takes {figures['cpu_ratio']:.2f} times the CPU time"
                        out.append(f'<rect x="{at(figures["cpu_ratio"]) - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" {paint}>'
                                   f"<title>{escape(label)}</title></rect>")  # fmt: skip
    return out, bottom + 44


def chart(files):
    parts = {}
    for one in sorted(files, key=lambda one: one["date"]):
        parts.setdefault((one["class"], one["shape"], one["machine"]["cpu"], one["machine"]["threads"]), []).append(one)
    out, top = [text(10, 24, "Meshwright's speed as a multiple of the peer's fastest way (right of 1x: Meshwright is faster)")], 62
    for i, (peer, colour) in enumerate(COLOURS.items()):
        out.append(f'<circle cx="{16 + 100 * i}" cy="38" r="4.5" fill="{colour}"/>' + text(26 + 100 * i, 42, peer))
    out.append(text(326, 42, "circles: wall time, squares: CPU time; open: of an earlier day"))
    for results in parts.values():
        lines, top = part(results, top + 8)
        out += lines
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" font-family="sans-serif" font-size="11">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{top}" fill="white"/>', *out, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks/results")
    parser.add_argument("--out", type=Path, default=ROOT / "resources/manual/images/peers.svg")
    args = parser.parse_args()
    files = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(args.results.glob("*.json"))]
    if not files:
        parser.error(f"{args.results}: holds no JSON file; scripts/peers.sh --json FILE writes one")
    args.out.write_text(chart(files), encoding="utf-8")


if __name__ == "__main__":
    main()
