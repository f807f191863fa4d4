# SPDX-License-Identifier: GPL-3.0-or-later
"""README and the manual show the newest results of scripts/peers.sh."""
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def printed(*options):
    output = subprocess.run([sys.executable, ROOT / "scripts/peers/table.py", *options], check=True, capture_output=True, text=True)
    return [line for line in output.stdout.splitlines() if line]


class SpeedTables(unittest.TestCase):
    def check(self, lines, file):
        text = (ROOT / file).read_text(encoding="utf-8").splitlines()
        self.assertGreater(len(lines), 5)
        missing = [line for line in lines if line not in text and f"### {line}" not in text]
        self.assertEqual(missing, [], f"{file} lacks lines of scripts/peers/table.py")

    def test_readme(self):
        self.check(printed("--summary"), "README.md")

    def test_manual(self):
        self.check(printed(), "resources/manual/03-training.md")


if __name__ == "__main__":
    unittest.main()
