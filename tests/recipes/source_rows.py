# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the rows that a recipe's source.py makes of a downloaded dataset, as JSON; for recipe_source_test.cpp.

    python3 source_rows.py RECIPE_FOLDER DATA_FILE TABLE.json

TABLE.json is a tokenizer as a table: {"bos", "eos", "pad", "ids": {text: [id, ...]}}.
"""
import json
import pathlib
import sys

folder, data_file, table = pathlib.Path(sys.argv[1]), sys.argv[2], json.loads(pathlib.Path(sys.argv[3]).read_text())
sys.path.insert(0, str(folder))
import source  # noqa: E402


class Table:
    bos, eos, pad = table["bos"], table["eos"], table["pad"]

    @staticmethod
    def encode(text):
        return table["ids"][text]


settings = json.loads((folder / "settings.json").read_text())
hub = dict(settings["data"]["source"])
rows = source.load(hub, folder / "data" / "source.lock.json", data_file)
lock = source.verify(folder / "data" / "source.lock.json", hub, rows)
made = source.build(rows, settings, Table)
print(json.dumps({"lock": lock, "steps": settings["train"]["steps"], **made}))
