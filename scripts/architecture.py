#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws core/architecture.svg from the rooms of core/CMakeLists.txt: a box per room, a line to each room it needs directly.

  scripts/architecture.py            writes the picture
  scripts/architecture.py --check    exits with 1 if the picture is not current
"""
import importlib.util
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "core" / "architecture.svg"
BOX_HEIGHT, ROW, GAP, MARGIN, CHARACTER = 26, 62, 14, 16, 6.6
COLOURS = {"base": "#e8e8e8", "model": "#e8e8e8", "hardware": "#e8e8e8", "data": "#dff0d8", "formats": "#dff0d8",
           "mesh": "#d9edf7", "lint": "#d9edf7", "designer": "#d9edf7", "plan": "#fcf8e3", "audit": "#fcf8e3",
           "engine": "#f2dede", "train": "#f2dede", "serve": "#efe0f5"}


def read_rooms():
    """{room: rooms it links}, in the order of core/CMakeLists.txt; rooms are named by their folder below core."""
    path = ROOT / "scripts" / "check-repository.py"
    spec = importlib.util.spec_from_file_location("check_repository", path)
    check = importlib.util.module_from_spec(spec)
    sys.modules["check_repository"] = check
    spec.loader.exec_module(check)
    rooms = [room for room in check.Repository(ROOT).rooms if room.folders[0].startswith("core/")]
    folders = {room.target: folder_of(room) for room in rooms}
    return {folders[room.target]: [folders[d] for d in room.dependencies if d in folders] for room in rooms}


def folder_of(room):
    parts = [folder.removeprefix("core/") for folder in room.folders]
    return parts[0] if len(parts) == 1 else parts[0].split("/")[0]


def reachable(rooms):
    out = {}
    for room, deps in rooms.items():  # dependencies come first in the file
        out[room] = set(deps).union(*(out[d] for d in deps))
    return out


def layers(rooms):
    level = {}
    for room, deps in rooms.items():
        level[room] = 1 + max((level[d] for d in deps), default=-1)
    rows = [[] for _ in range(max(level.values()) + 1)]
    for room in rooms:
        rows[level[room]].append(room)
    return rows


def width(room):
    return len(room) * CHARACTER + 18


def place(rows, direct):
    """Centres of the boxes. Rows are ordered by the mean place of what they need, twice."""
    total = max(sum(width(r) + GAP for r in row) for row in rows)
    at = {}
    for _ in range(2):
        for row in rows:
            if at:
                row.sort(key=lambda r: sum(at[d][0] for d in direct[r]) / len(direct[r]) if direct[r] else 0)
            used = sum(width(r) for r in row)
            gap = (total - used) / (len(row) + 1)
            x = MARGIN + gap
            y = MARGIN + (len(rows) - 1 - rows.index(row)) * ROW
            for room in row:
                at[room] = (x + width(room) / 2, y)
                x += width(room) + gap
    return at, total + 2 * MARGIN


def draw(rooms):
    far = reachable(rooms)
    direct = {room: [d for d in dict.fromkeys(deps) if not any(d in far[o] for o in deps if o != d)]
              for room, deps in rooms.items()}
    rows = layers(rooms)
    at, full = place(rows, direct)
    height = 2 * MARGIN + (len(rows) - 1) * ROW + BOX_HEIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full:.0f} {height}" width="{full:.0f}" '
           f'height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{full:.0f}" height="{height}" fill="white"/>']
    for room, deps in direct.items():
        for d in deps:
            (x1, y1), (x2, y2) = at[room], at[d]
            out.append(f'<line x1="{x1:.0f}" y1="{y1 + BOX_HEIGHT:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="#9aa5b1"/>')
    for room, (x, y) in at.items():
        w = width(room)
        colour = COLOURS.get(room.split("/")[0], "#ffffff")
        out.append(f'<rect x="{x - w / 2:.0f}" y="{y:.0f}" width="{w:.0f}" height="{BOX_HEIGHT}" rx="4" fill="{colour}" '
                   f'stroke="#52606d"/>')
        out.append(f'<text x="{x:.0f}" y="{y + 17:.0f}" text-anchor="middle" fill="#1f2933">{room}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    picture = draw(read_rooms())
    if sys.argv[1:] == ["--check"]:
        if not PICTURE.exists() or PICTURE.read_text() != picture:
            sys.exit(f"{PICTURE.relative_to(ROOT)} is not current: run scripts/architecture.py")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        PICTURE.write_text(picture)


main()
