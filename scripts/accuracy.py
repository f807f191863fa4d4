#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what `meshwright accuracy` says of the shipped calibration: every row to resources/hardware/accuracy.md, and how
good predictions are by kind, with a chart, to chapter 11 of the manual.

  scripts/accuracy.py PROGRAM      called by scripts/accuracy.sh
"""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MANUAL = ROOT / "resources/manual"
KINDS = {"training": "Step of a training", "memory": "Memory per device", "throughput": "Output of a server",
         "tpot": "TPOT", "ttft": "TTFT"}

CHAPTER = """# Accuracy of predictions

Every published measurement that an experiment can describe is predicted, {rows} in all. The efficiencies of the planner are
fitted to rows for calibration; **held-out rows are predicted and never fitted to**, so their errors are those that you can
expect for work like theirs. Made {date} with the calibration: {calibration}.

| Held-out rows of | rows | mean error | median | worst | inside the 90 % interval | median width |
|---|---|---|---|---|---|---|
{table}

{intervals}

![Errors by kind: a dot for each row](images/accuracy.svg)

- An error is one of time or bytes: + is predicted too slow or too large. A row that is refused counts as 100 %.
- The interval of a row comes from the errors on all rows but those of its own run, so that no row is judged by its own
  error. For other work than that of the rows an interval is wider, or there is none.
- Chips and software without rows of their own take the efficiencies of their nearest kin (`plan` says which); expect larger
  errors there, and measure.

Every row, and the same by software and chip: [the tables](../hardware/accuracy.md), `meshwright accuracy`, or *Accuracy of
Predictions...* on the Runs page. What is published but cannot be described stands below the tables, with the reason.
`scripts/accuracy.sh` writes this chapter and the tables.
"""


def percent(share):
    return f"{100 * share:.1f} %"


def table_of(report):
    lines = []
    for group in report["totals"]:
        if group["use"] != "holdout" or "load" in group:
            continue
        name = KINDS[group["kind"]] + (f", {group['vendor'].upper()}" if "vendor" in group else "")
        inside = f"{group['inside']} of {group['with_interval']} ({percent(group['coverage'])})"
        lines.append(f"| {name} | {group['rows']} | {percent(group['mean_error'])} | {percent(group['median_error'])} | "
                     f"{percent(group['worst_error'])} | {inside} | {percent(group['median_width'])} |")
    return "\n".join(lines)


def chart_of(report):
    """Errors of the rows on one axis, a band for each kind, as SVG. Errors beyond the axis stand at its end."""
    width, left, right, band, top, most = 720, 140, 90, 58, 24, 0.4
    height = top + band * len(KINDS) + 50
    at = lambda error: left + (max(-most, min(most, error)) + most) / (2 * most) * (width - left - right)
    label = lambda tick: f"{100 * tick:+.0f}" if tick else "0"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for tick in (-0.4, -0.2, -0.1, 0, 0.1, 0.2, 0.4):
        colour = "#57606a" if tick == 0 else "#d8dee4"
        out.append(f'<line x1="{at(tick):.1f}" x2="{at(tick):.1f}" y1="{top}" y2="{height - 46}" stroke="{colour}"/>'
                   f'<text x="{at(tick):.1f}" y="{height - 30}" text-anchor="middle">{label(tick)} %</text>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - 10}" text-anchor="middle">'
               'error of the prediction (+: predicted too slow or too large)</text>')
    for i, (kind, title) in enumerate(KINDS.items()):
        middle = top + band * (i + 0.5)
        rows = [r for r in report["rows"] if r["kind"] == kind and r["counted"] and r["error"] is not None]
        out.append(f'<text x="{left - 10}" y="{middle + 4:.1f}" text-anchor="end">{title}</text>')
        for use, colour, offset in (("holdout", "#0969da", -12), ("calibration", "#8c959f", 12)):
            those = sorted((r["error"] for r in rows if r["use"] == use))
            for n, error in enumerate(those):  # neighbours on five heights, so that they can be told apart
                y = middle + offset + (n % 5 - 2) * 4
                out.append(f'<circle cx="{at(error):.1f}" cy="{y:.1f}" r="2" fill="{colour}" fill-opacity="0.7"/>')
            out.append(f'<text x="{width - right + 8}" y="{middle + offset + 4:.1f}" fill="{colour}">{len(those)} '
                       f'{"held out" if use == "holdout" else "fitted"}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    program = sys.argv[1]
    call = lambda form: subprocess.run([program, "accuracy", form], check=True, capture_output=True, text=True).stdout
    report = json.loads(call("--json"))
    every = report["held_out_intervals"]["all"]
    intervals = (f"Of all held-out rows with an interval {every['inside']} of {every['rows']} "
                 f"({percent(every['inside'] / every['rows'])}) lie inside; the median width is {percent(every['median_width'])}.")
    (ROOT / "resources/hardware/accuracy.md").write_text(call("--markdown"))
    (MANUAL / "images/accuracy.svg").write_text(chart_of(report))
    (MANUAL / "11-accuracy.md").write_text(CHAPTER.format(
        rows=len(report["rows"]), date=report["date"], calibration=report["calibration"].rstrip("."), table=table_of(report),
        intervals=intervals))


if __name__ == "__main__":
    main()
