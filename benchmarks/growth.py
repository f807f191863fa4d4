#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures how time and memory grow with the work, fits the exponents, and fails if one exceeds its law.

    benchmarks/growth.py [--preset release] [--work FOLDER] [--case NAME ...] [--most N] [--rounds 3] [--write]

Each row is one whole process: the program as a user runs it, or a benchmark of the window where the work is in the
window. Time is CPU time of the process, memory its peak. The exponent is the slope of log(cost) over log(size) in the largest
decade, where what a start costs weighs least. A law is an upper limit for it; kNoise is allowed above it.
FOLDER keeps the generated files between calls; --most limits the size of every case; --write makes the chapter of the manual.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOISE = 0.15
WORDS = ("mesh shard token layer batch prompt cache memory step device axis weight rank adapter gradient loss attention norm "
         "head expert prefill decode queue slice chip host link bandwidth latency throughput").split()


CHAPTER = """# How time and memory grow

What larger work costs: more rows of data, runs, events, chips, requests, replicas and layers. `benchmarks/growth.py --write` measured it
and wrote this chapter on {date}, on {machine}.

Each row is one process: the command as a user runs it, or a benchmark of the window. CPU time is that of all its threads,
peak its largest memory; medians of {rounds} rounds. The exponent is the slope of log(cost) over log(size) in the largest decade: 1 is
proportional, 0 does not grow. The number in brackets is the limit; the benchmark fails above it by more than {noise}.

{table}
![CPU time over size, both logarithmic](images/growth.svg)
"""


@dataclass
class Cost:
    cpu: float  # seconds
    wall: float
    peak: float  # MiB


@dataclass
class Case:
    name: str
    unit: str
    sizes: tuple
    time_law: float
    memory_law: float
    measure: Callable  # (Bench, size) -> Cost
    about: str


class Bench:
    def __init__(self, preset, work):
        self.build, self.work = ROOT / "build" / preset, work
        self.program = self.build / "app/meshwright"
        self.environment = dict(os.environ, XDG_CONFIG_HOME=str(work / "config"), QT_QPA_PLATFORM="offscreen",
                                MESHWRIGHT_RUNS=str(work / "runs"))

    def run(self, command):
        """Runs a process to its end: its cost and its output."""
        with open(self.work / "output.txt", "w+b") as output:
            start = time.monotonic()
            process = subprocess.Popen([str(c) for c in command], stdout=output, stderr=subprocess.STDOUT, env=self.environment)
            _, status, used = os.wait4(process.pid, 0)
            wall = time.monotonic() - start
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            text = output.read().decode(errors="replace")
        if process.returncode:
            sys.exit(f"{' '.join(map(str, command))}\nended with {process.returncode}: {text[-2000:]}")
        return Cost(used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024), text

    def call(self, *arguments):
        return self.run([self.program, *arguments])[0]

    def tool(self, name, *arguments):
        cost, text = self.run([self.build / "benchmarks" / name, *arguments])
        return cost, json.loads(text[text.index("{"):])

    def rows(self, n):
        """A JSONL file of n rows of prompt and completion, about 680 bytes each, all different."""
        file = self.work / f"rows-{n}.jsonl"
        if not file.exists():
            part = file.with_suffix(".part")
            state = 1
            with open(part, "w") as out:
                for i in range(n):
                    words = []
                    for _ in range(90):
                        state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
                        words.append(WORDS[(state >> 33) % len(WORDS)])
                    out.write(json.dumps({"prompt": f"{i}: {' '.join(words[:45])}", "completion": " ".join(words[45:])}) + "\n")
            part.rename(file)
        return file

    def fresh_runs(self):
        """An empty run store, without the cache of rows."""
        subprocess.run(["rm", "-rf", str(self.work / "runs")], check=True)

    def data_settings(self, n, *more):
        settings = [f"data.path={self.rows(n)}", "data.max_len=256", "data.overlong=truncate", "train.steps=1",
                    "train.batch=4", "train.answers=0", *more]
        return [ROOT / "resources/examples/tiny-lora.json", *(word for s in settings for word in ("--set", s))]


def plan_first(bench, n):
    bench.rows(n)
    bench.fresh_runs()
    return bench.call("plan", *bench.data_settings(n))


def plan_again(bench, n):
    plan_first(bench, n)
    return bench.call("plan", *bench.data_settings(n))


def run_again(bench, n):
    bench.rows(n)
    bench.fresh_runs()
    bench.call("run", *bench.data_settings(n))
    return bench.call("run", *bench.data_settings(n))


def of_tool(name, keys, folder):
    """What a benchmark prints under these keys: {"wall_ms", "cpu_ms"[, "largest_memory_mib"]}; else the memory of its process."""
    def measure(bench, n):
        prepared = bench.work / f"{folder}-{n}"
        if not prepared.exists():
            bench.tool(name, prepared, n)
        cost, figures = bench.tool(name, prepared, n)
        for key in keys:
            figures = figures[key]
        return Cost(figures["cpu_ms"] / 1e3, figures["wall_ms"] / 1e3, figures.get("largest_memory_mib", cost.peak))
    return measure


def sweep(bench, n):
    return bench.call("sweep", ROOT / "resources/examples/paper-serve-v6e-8.json", "--set", f"sweep.num_prompts={n}", "--set",
                      "sweep.input_lens=[512]", "--set", "sweep.request_rates=[4]", "--set", "sweep.output_len=64")


def replicas(bench, n):
    """A load per replica that leaves it stable, and as many different system prompts."""
    settings = ("sweep.input_lens=[512]", "sweep.output_len=64", f"sweep.num_prompts={2000 * n}", f"sweep.request_rates=[{4 * n}]",
                f"sweep.replicas={n}", "sweep.routing=prefix_aware", "sweep.shared_prefix=256", f"sweep.shared_prefixes={4 * n}")
    return bench.call("sweep", ROOT / "resources/examples/paper-serve-v6e-8.json", *(word for s in settings for word in ("--set", s)))


def on_chips(command):
    """Gemma 4 31B on n chips of TPU v5p, whose slices are named by twice their number."""
    def measure(bench, n):
        mesh = ("mesh.fsdp=64", "mesh.tp=4", f"mesh.data={n // 256}", "train.stack=maxtext") if command == "plan" else ()
        settings = (f"target.id=v5p-{2 * n}", f"train.batch={n}", *mesh)
        return bench.call(command, ROOT / "resources/examples/paper-train-v5p-8.json", "--json",
                          *(word for s in settings for word in ("--set", s)))
    return measure


def canvas(bench, n):
    """One step of a drag: the median of 100."""
    cost, figures = bench.tool("mw_canvas_bench", n // 256)
    seconds = figures["attempt_and_repaint"]["median_ms"] / 1e3
    return Cost(seconds, seconds, cost.peak)


def merge(bench, n):
    base = bench.work / f"base-{n}"
    if not base.exists():
        subprocess.run([sys.executable, ROOT / "scripts/make_random_checkpoint.py", "--shape", "gemma3-270m", "--out", base,
                        "--adapter", bench.work / f"adapter-{n}", "--layers", str(n)], check=True)
    out = bench.work / "merged"
    subprocess.run(["rm", "-rf", str(out)], check=True)
    return bench.call("merge", "--base", base, "--adapter", bench.work / f"adapter-{n}", "--out", out, "--allow-unchecked")


ROWS = (1_000, 10_000, 100_000, 1_000_000)
CASES = [
    Case("inspect", "rows", ROWS, 1, 0.3, lambda bench, n: bench.call("inspect", bench.rows(n)), "inspect of a JSONL file"),
    Case("plan-first", "rows", ROWS, 1, 0.8, plan_first, "plan that reads and tokenises the data"),
    Case("plan-again", "rows", ROWS, 0.9, 0.8, plan_again, "plan of data that was read before"),
    Case("run-again", "rows", ROWS, 0.9, 0.8, run_again, "run of one step on data that was read before"),
    Case("runs-page", "runs", (100, 1_000, 10_000), 1, 1, of_tool("mw_runs_bench", ["open"], "runs"), "opening the Runs page"),
    Case("runs-delete", "runs", (1_000, 10_000), 1, 1, of_tool("mw_runs_bench", ["scattered", "delete"], "runs"),
         "deleting 1,000 runs of the page"),
    Case("events", "events", (10_000, 100_000, 1_000_000), 1, 1, of_tool("mw_events_bench", ["open one"], "events"),
         "opening a run with its metrics"),
    Case("compare", "events", (10_000, 100_000, 1_000_000), 1, 1,
         of_tool("mw_events_bench", ["open the other and compare"], "events"), "comparing it with another"),
    Case("search", "chips", (8, 64, 512, 4_096), 0.6, 0.3, on_chips("search"), "search for a mesh"),
    Case("plan", "chips", (256, 512, 4_096), 0.6, 0.3, on_chips("plan"), "plan of a mesh"),
    Case("canvas", "chips", (256, 1_024, 4_096), 1, 0.3, canvas, "step of a drag on the mesh canvas"),
    Case("simulate", "requests", (1_000, 10_000, 100_000, 1_000_000), 1, 0.2, sweep, "simulated requests of one load"),
    Case("replicas", "replicas", (1, 4, 16, 64), 1.1, 0.3, replicas, "2,000 simulated requests for each replica"),
    Case("merge", "layers", (6, 18, 60), 1, 1, merge, "merging an adapter of this many layers"),
]


def slope(costs, figure, sizes):
    """Of the largest decade: between the largest size and the size a tenth of it, or the smallest above."""
    last = sizes[-1]
    first = min(size for size in sizes[:-1] if size >= last / 10)
    return math.log(figure(costs[last]) / figure(costs[first])) / math.log(last / first)


def number(value):
    return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "this machine")
    return f"{os.cpu_count()} cores of {model}"


def measure(case, bench, rounds, most):
    sizes = [size for size in case.sizes if size <= most]
    costs = {}
    for size in sizes:
        seen = [case.measure(bench, size) for _ in range(rounds)]
        costs[size] = Cost(*(statistics.median(getattr(c, f) for c in seen) for f in ("cpu", "wall", "peak")))
        print(f"{case.name} {size:,} {case.unit}: {number(costs[size].cpu)} s CPU, {number(costs[size].wall)} s, "
              f"{number(costs[size].peak)} MiB", flush=True)
    return sizes, costs


def rows_of(case, sizes, costs):
    """The lines of the table, and what exceeds its law."""
    lines, over = [], []
    exponents = {}
    for what, figure, law in (("time", lambda c: c.cpu, case.time_law), ("memory", lambda c: c.peak, case.memory_law)):
        exponents[what] = slope(costs, figure, sizes)
        if exponents[what] > law + NOISE:
            over.append(f"{case.name}: {what} grows as n^{exponents[what]:.2f}, the law is n^{law:g}")
    for i, size in enumerate(sizes):
        cost, last = costs[size], i + 1 == len(sizes)
        laws = (f"{exponents['time']:.2f} (at most {case.time_law:g}) | {exponents['memory']:.2f} (at most {case.memory_law:g})"
                if last else " | ")
        lines.append(f"| {case.about if i == 0 else ''} | {size:,} {case.unit} | {number(cost.cpu)} | {number(cost.wall)} | "
                     f"{number(cost.peak)} | {laws} |")
    return lines, over


def chart(measured):
    """Costs over sizes on two logarithmic axes, as SVG."""
    width, height, left, bottom = 720, 420, 60, 50
    points = [(size, cost.cpu) for _, _, costs in measured for size, cost in costs.items()]
    x_low, x_high = (f(math.log10(x) for x, _ in points) for f in (min, max))
    y_low, y_high = math.floor(min(math.log10(y) for _, y in points)), math.ceil(max(math.log10(y) for _, y in points))
    at_x = lambda x: left + (math.log10(x) - x_low) / (x_high - x_low) * (width - left - 170)
    at_y = lambda y: height - bottom - (math.log10(y) - y_low) / (y_high - y_low) * (height - bottom - 20)
    colours = ("#1f6feb", "#d9730d", "#1a7f37", "#cf222e", "#8250df", "#9a6700", "#0a7ea4", "#6e7781",
               "#bf3989", "#57ab5a", "#000000", "#a475f9", "#8c959f", "#b35900")
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for power in range(y_low, y_high + 1):
        y = at_y(10**power)
        out.append(f'<line x1="{left}" x2="{width - 170}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')
    for power in range(math.ceil(x_low), math.floor(x_high) + 1):
        out.append(f'<text x="{at_x(10**power):.1f}" y="{height - bottom + 16}" text-anchor="middle">{10**power:,}</text>')
    out.append(f'<text x="{(left + width - 170) / 2}" y="{height - 12}" text-anchor="middle">'
               'size (rows, runs, events, chips, requests, replicas or layers)</text>')
    for i, (case, sizes, costs) in enumerate(measured):
        colour = colours[i % len(colours)]
        line = " ".join(f"{at_x(size):.1f},{at_y(costs[size].cpu):.1f}" for size in sizes)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        out += [f'<circle cx="{at_x(s):.1f}" cy="{at_y(costs[s].cpu):.1f}" r="2.5" fill="{colour}"/>' for s in sizes]
        out.append(f'<text x="{width - 160}" y="{30 + 16 * i}" fill="{colour}">{case.name}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="release")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/mw-growth"))
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES])
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    bench = Bench(options.preset, options.work.resolve())
    measured, lines, over = [], [], []
    for case in CASES:
        if options.case and case.name not in options.case:
            continue
        sizes, costs = measure(case, bench, options.rounds, options.most)
        measured.append((case, sizes, costs))
        more, beyond = rows_of(case, sizes, costs)
        lines += more
        over += beyond
    table = "\n".join(["| What | Size | CPU (s) | Wall (s) | Peak (MiB) | Exponent of time | Exponent of memory |",
                       "|---|---|---|---|---|---|---|", *lines]) + "\n"
    print(table)
    if options.write:
        manual = ROOT / "resources/manual"
        (manual / "images/growth.svg").write_text(chart(measured))
        (manual / "12-growth.md").write_text(CHAPTER.format(date=datetime.date.today(), machine=machine(), rounds=options.rounds,
                                                            noise=NOISE, table=table))
    for line in over:
        print(line)
    print(f"{len(measured)} cases, {len(over)} exponents above their law")
    return len(over) > 0


if __name__ == "__main__":
    sys.exit(main())
