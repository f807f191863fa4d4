# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs scripts/check-repository.py on small trees, each with one mistake."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check-repository.py"

# Two rooms, of which mw_b may include mw_a, with all that the rules ask for.
SOUND = {
    "core/CMakeLists.txt": "# Rooms.\nmw_room(core/a DEPS nlohmann_json::nlohmann_json)\nmw_room(core/b DEPS mw_a)\n",
    "core/a/README.md": "# a\n",
    "core/a/one.h": "#pragma once\nstruct One {};\n",
    "core/b/README.md": "# b\n",
    "core/b/two.h": '#pragma once\n#include "core/a/one.h"\nstruct Two {};\n',
    "tests/a/one_test.cpp": '#include "core/a/one.h"\n',
    "tests/b/two_test.cpp": '#include "core/b/two.h"\n',
}


class CheckRepository(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write(SOUND)

    def write(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def check(self, *options):
        return subprocess.run([sys.executable, str(SCRIPT), "--root", str(self.root), *options],
                              capture_output=True, text=True, check=False)

    def expect_pass(self):
        result = self.check()
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def expect_failure(self, *parts):
        result = self.check()
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        for part in parts:
            self.assertIn(part, result.stdout)

    def test_accepts_a_sound_tree(self):
        self.expect_pass()

    def test_rejects_texts_that_cannot_be_translated(self):
        self.write({"ui/a.cpp": 'f(tr("%n row(s)", nullptr, n)); f(tr("%1 tokens/s")); f(tr("%1 settings"));\n'})
        self.expect_pass()
        for code, part in (('tr("%1 rows").arg(n)', "has no plural form"), ('n == 1 ? tr("1 row") : x', "has no plural form"),
                           ('text += tr(", packed")', "is a piece of a sentence"),
                           ('text(p) + tr("predicted")', "adds a translated text to another")):
            self.write({"ui/a.cpp": f"void f() {{ {code}; }}\n"})
            self.expect_failure("text: ui/a.cpp: ", part)

    def test_rejects_an_include_of_a_room_that_is_not_linked(self):
        self.write({"core/a/one.cpp": '#include "core/b/two.h"\n'})
        self.expect_failure("order: core/a/one.cpp: includes core/b/two.h, but mw_a does not link mw_b")

    def test_rejects_a_reference_to_a_file_that_does_not_exist(self):
        self.write({"core/a/one.h": "#pragma once\n// As core/a/two.h does.\nstruct One {};\n"})
        self.expect_failure("path: core/a/one.h:2: refers to core/a/two.h, which does not exist")
        self.write({"core/a/one.h": "#pragma once\n// As core/b/two.h does.\nstruct One {};\n"})
        self.expect_pass()

    def test_reads_the_order_from_cmake(self):
        self.write({"core/CMakeLists.txt": "mw_room(core/a)\nmw_room(core/b)\n"})
        self.expect_failure("order: core/b/two.h: includes core/a/one.h, but mw_b does not link mw_a")

    def test_accepts_an_include_of_an_indirectly_linked_room(self):
        self.write({"core/CMakeLists.txt": SOUND["core/CMakeLists.txt"] + "mw_room(core/c/d OWN_FLAGS DEPS mw_b)\n",
                    "core/c/README.md": "# c\n", "core/c/d/three.h": '#include "core/a/one.h"\n',
                    "tests/c/three_test.cpp": ""})
        self.expect_pass()

    def test_reads_rooms_that_a_function_adds(self):
        self.write({"core/CMakeLists.txt": "function(part room)\n  mw_room(core/${room} DEPS ${ARGN})\nendfunction()\n"
                                           "part(a mw_base)\npart(b mw_base mw_a)\n"})
        self.expect_pass()
        self.write({"core/CMakeLists.txt": "function(part room)\n  mw_room(core/${room} DEPS ${ARGN})\nendfunction()\n"
                                           "part(a mw_base)\npart(b mw_base)\n"})
        self.expect_failure("core/b/two.h: includes core/a/one.h, but mw_b does not link mw_a")

    def test_treats_the_folders_of_one_target_as_one_room(self):
        self.write({"core/CMakeLists.txt": "mw_room(core/all\n  FOLDERS core/a core/b)\n"})
        self.expect_pass()

    def test_rejects_a_folder_without_room(self):
        self.write({"core/c/README.md": "", "core/c/three.h": '#include "core/a/one.h"\n',
                    "tests/c/three_test.cpp": ""})
        self.expect_failure("order: core/c/three.h: the folder belongs to no room")

    def test_rejects_includes_of_upper_layers(self):
        self.write({"core/a/one.cpp": '#include "ui/x.h"\n', "ui/p/README.md": "",
                    "ui/p/page.cpp": '#include "app/y.h"\n'})
        self.expect_failure("core must not know ui", "ui must not know app")

    def test_rejects_a_circle_of_folders(self):
        self.write({"ui/p/README.md": "", "ui/p/page.h": '#include "ui/q/bar.h"\n', "ui/q/README.md": "",
                    "ui/q/bar.h": '#include "ui/r/foo.h"\n', "ui/r/README.md": "",
                    "ui/r/foo.h": '#include "ui/p/page.h"\n'})
        self.expect_failure("circle: ui/p: includes ui/q", "circle: ui/q: includes ui/r", "circle: ui/r: includes ui/p")

    def test_rejects_a_missing_or_long_readme(self):
        (self.root / "core/a/README.md").unlink()
        self.write({"core/b/README.md": "line\n" * 41})
        self.expect_failure("readme: core/a: README.md is missing", "readme: core/b/README.md has 41 lines")

    def test_rejects_references_to_absent_documents(self):
        absent = "gemma" + ".md"
        self.write({"core/a/one.h": f"// See {absent} 4.1.\n"})
        self.expect_failure(f"document: core/a/one.h:1: refers to {absent}")
        self.write({f"docs/{absent}": "Facts.\n"})
        self.expect_pass()

    def test_rejects_a_type_that_another_header_names(self):
        self.write({"core/a/one.h": "struct Point {\n  struct Part {};\n};\nclass Later;\n",
                    "core/b/two.h": "class Other : public Base<int> {\n  struct Part {};\n};\nclass Later;\n"})
        self.expect_pass()
        for again in ("struct Point {\n};\n", "enum class Point { x };\n", "using Point = int;\n", "using a::Point;\n",
                      "template <class T>\nclass Point final : public T {\n};\n"):
            self.write({"core/b/two.h": again})
            self.expect_failure("unique: core/b/two.h: declares Point, as core/a/one.h does")

    def test_rejects_retired_names_of_types_functions_and_files(self):
        self.write({"core/a/one.h": "class Fabric {\n};\nusing Flow = int;\nvoid few_rows(int);\n",
                    "core/b/kv_blocks.h": ""})
        self.expect_failure("declares type Fabric", "declares type Flow", "declares function few_rows",
                            "core/b/kv_blocks.h: the file has a retired name")

    def test_accepts_retired_names_outside_declarations(self):
        self.write({"core/a/one.h": "// The Core of a Flow.\nclass Flow;\nint core = 1;\n"})
        self.expect_pass()

    def test_rejects_an_engine_source_without_header_or_reason(self):
        self.write({"core/CMakeLists.txt": SOUND["core/CMakeLists.txt"] + "mw_room(core/engine DEPS mw_b)\n",
                    "core/engine/README.md": "", "tests/engine/x_test.cpp": "",
                    "core/engine/lone.cpp": "// SPDX-License-Identifier: Apache-2.0\n#include <vector>\n"})
        self.expect_failure("header: core/engine/lone.cpp")
        self.write({"core/engine/lone.cpp": "// SPDX-License-Identifier: Apache-2.0\n// Implements forward.h.\n"})
        self.expect_pass()

    def test_rejects_a_room_without_tests(self):
        (self.root / "tests/b/two_test.cpp").unlink()
        self.expect_failure("tests: core/b: there is no tests/b")

    def test_rejects_a_class_of_too_many_methods(self):
        methods = "".join(f"  int f{i}(int a = 1, std::function<void()> b = {{}}) const {{ return g(a); }}\n" for i in range(54))
        members = "  int x = f(1);\n  std::function<void()> done;\n  enum class Kind { a, b };\n"
        self.write({"ui/a.h": f"#pragma once\nclass Page : public Base {{\n public:\n{methods} private:\n{members}}};\n"})
        self.expect_pass()
        self.write({"ui/a.h": f"#pragma once\nclass Page : public Base {{\n public:\n{methods}  ~Page();\n}};\n"})
        self.expect_failure("methods: ui/a.h: Page declares 55 functions")

    def test_rejects_opening_a_store_outside_the_session(self):
        self.write({"ui/session/README.md": "", "ui/session/reader.cpp": "auto rows = store::Store(folder).list();\n",
                    "ui/page.cpp": "// Never store::Store(folder).\nvoid f(const store::Store& store);\n"})
        self.expect_pass()
        for code in ("store::Store(folder).list();", "const store::Store store(folder);", "std::make_unique<store::Store>(f);"):
            self.write({"ui/page.cpp": f"void f() {{ {code} }}\n"})
            self.expect_failure("store: ui/page.cpp: opens the run store")

    def test_rejects_binding_outside_the_room_of_experiments(self):
        self.write({"app/run.cpp": "auto bound = experiment::bind(document);\n"})
        self.expect_failure("binding: app/run.cpp")
        self.write({"app/run.cpp": "// Once experiment::bind(document).\nauto& config = document.config();\n"})
        self.expect_pass()


if __name__ == "__main__":
    unittest.main()
