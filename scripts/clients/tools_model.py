# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a folder with an experiment that teaches the shipped model conversations with a tool.

    tools_model.py ROOT FOLDER    # FOLDER/tools.json
"""
import json
import pathlib
import shutil
import sys

root, folder = map(pathlib.Path, sys.argv[1:])
shutil.copytree(root / "resources/base-model", folder / "model")
shutil.copy(root / "scripts/clients/tools.jinja", folder / "model/chat_template.jinja")
tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("weather", "now")]
call = {"type": "function", "function": {"name": "weather", "arguments": {"city": "Paris", "days": 2}}}
at_once = [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
messages = [
    {"role": "user", "content": "Is it warm in Paris?"},
    {"role": "assistant", "content": "", "reasoning_content": "I ask the tool.", "tool_calls": [call]},
    {"role": "tool", "content": "25 degrees"},
    {"role": "assistant", "content": "Yes, it is warm."}]
rows = [{"messages": part, "tools": tools} for part in (messages[:2], messages, at_once)]
(folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
(folder / "tools.json").write_text(json.dumps({
    "schema": 1, "name": "Tools", "model": {"path": "model"}, "target": {"id": "cpu"}, "lora": {"rank": 8, "alpha": 16},
    "data": {"path": "rows.jsonl", "max_len": 512, "eval_fraction": 0},
    "train": {"steps": 100, "batch": 3, "learning_rate": 0.005, "warmup_steps": 5, "sample_every": 0}}, indent=2))
