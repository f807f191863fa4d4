#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the structure of the repository; ctest runs it as repository.rules, scripts/pre-commit before a commit.

  scripts/check-repository.py [--root DIR]

Rules:
  order       A file of core or ui includes only files of its own room and of the rooms that its room links (mw_room in
              core/CMakeLists.txt and ui/CMakeLists.txt, transitively).
  circle      Folders of core and ui do not include each other in a circle.
  readme      Every top-level room of core and ui has a README.md of at most 40 lines.
  document    Comments and documents do not refer to documents that are not in the repository.
  path        Comments and documents do not refer to files of this repository that do not exist.
  unique      A type has its name to itself: no header of another room declares it, or names it again by using.
  vocabulary  Declarations and file names do not use retired names.
  header      A .cpp file of core/engine has a header of its own name, or its first comment names the header.
  tests       Every room of core with code has a folder in tests.
  text        Texts of the window can be translated: a number before a noun chooses the plural form, and no sentence is
              put together from pieces.
  methods     A class in a header of ui declares at most 54 functions: a larger one is several things.
  store       Only ui/session opens the run store; elsewhere StoreReader, with_store() and KeptStore give one.
  binding     Only core/experiment reads the values of a document; elsewhere a document is asked for them.
"""
import argparse
import re
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

CODE_FOLDERS = ("core", "ui", "app", "tests", "benchmarks")
TEXT_FOLDERS = CODE_FOLDERS + ("scripts", "docs", "resources")
TEXT_SUFFIXES = {".h", ".cpp", ".txt", ".md", ".py", ".sh", ".json", ".cmake", ".qss"}
README_LINES = 40
CLASS_METHODS = 54

OUTSIDE_DOCUMENTS = ("contract gemma rooms language design pages interop hardware_and_results newer_hardware systems "
                     "gui_and_style cpu_peers").split()
RETIRED_TYPES = ("Flow Flows DeviceFlow AxisFlow Region Stretch WorkingForm Fabric Port Meeting CallFor Core Want Into "
                 "Habits Live Ask Answered End KvBlocks ServeRoom Served Moment Attendance Ticket Either Subject Said "
                 "Newest Slim SlimRests AskedPlace Placed Facts ExperimentConfig").split()
RETIRED_FUNCTIONS = ("check_clumsy",)
RETIRED_PREFIXES = ("few_", "wide_", "slim_")  # of functions and files of the matrix product kernels

INCLUDE = re.compile(r'^\s*#\s*include\s+"((?:core|ui|app)/[^"]+)"', re.M)
TYPE_DECLARATION = re.compile(
    r"^[ \t]*(?:template\s*<[^;{]*>\s*)?(?:class|struct|union|enum(?:\s+class|\s+struct)?)\s+(?:\[\[[^\]]*\]\]\s*)?"
    r"(\w+)\b(?!\s*[;>,)&*])|^[ \t]*using\s+(\w+)\s*=", re.M)
NAMED_TYPE = re.compile(  # beside the margin, so that types within types do not count
    r"^(?:template\s*<[^;{]*>\s*)?(?:(?:struct|class|enum class|enum)\s+(?:\[\[[^\]]*\]\]\s*)?(\w+)(?:\s+final)?\s*"
    r"(?::[^:;{][^;{]*)?\{|using\s+([A-Z]\w*)\s*=|using\s+(?:\w+::)+([A-Z]\w*)\s*;)", re.M)
FUNCTION_DECLARATION = re.compile(r"^[ \t]*(?!return\b|else\b|throw\b)(?:[\w:<>,&*\[\]]+[ \t&*]+)+?(\w+)\(", re.M)


class Finding(NamedTuple):
    rule: str
    message: str  # what is wrong, where, what to do


class Room(NamedTuple):
    target: str
    folders: tuple
    dependencies: tuple


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def without_comments(code: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", code, flags=re.S)


# Replaces the calls of functions that this CMake file defines by their bodies.
def expand_functions(code: str) -> str:
    definition = re.compile(r"^function\((\w+)([^)]*)\)(.*?)^endfunction\(\)", re.M | re.S)
    for name, parameters, body in definition.findall(code):
        def expand(call, parameters=parameters.split(), body=body):
            words = call.group(1).split()
            values = dict(zip(parameters, words), ARGN=" ".join(words[len(parameters):]))
            return re.sub(r"\$\{(\w+)\}", lambda variable: values.get(variable.group(1), ""), body)
        code = definition.sub(lambda found, name=name: "" if found.group(1) == name else found.group(0), code)
        code = re.sub(rf"^{name}\(([^)]*)\)", expand, code, flags=re.M)
    return code


class Repository:
    def __init__(self, root: Path):
        self.root = root
        self.files = sorted(self.find_files())
        self.code = [f for f in self.files if f.suffix in (".h", ".cpp") and f.parts[0] in CODE_FOLDERS]
        self.rooms = [room for part in ("core", "ui") for room in self.read_rooms(part)]
        self.folders = {f.parent.as_posix() for f in self.code if f.parts[0] in ("core", "ui")}

    def find_files(self) -> Iterator[Path]:
        for folder in TEXT_FOLDERS:
            for path in (self.root / folder).rglob("*"):
                relative = path.relative_to(self.root)
                hidden = any(part.startswith(".") or part == "__pycache__" for part in relative.parts)
                if path.is_file() and not hidden:
                    yield relative
        for path in self.root.glob("*"):
            if path.is_file():
                yield path.relative_to(self.root)

    def text(self, file: Path) -> str:
        return text_of(self.root / file)

    # The rooms as CMake builds them: mw_room(FOLDER [OWN_FLAGS ...] [DEPS targets...] [FOLDERS folders...]).
    def read_rooms(self, part: str) -> Iterator[Room]:
        lists = self.root / part / "CMakeLists.txt"
        code = expand_functions(re.sub(r"#[^\n]*", "", text_of(lists))) if lists.exists() else ""
        for call in re.finditer(r"\bmw_room\(([^)]*)\)", code):
            words = call.group(1).split()
            folder, values, keyword = words[0], {"DEPS": [], "FOLDERS": []}, None
            for word in words[1:]:
                if word.isupper():
                    keyword = word
                elif keyword in values:
                    values[keyword].append(word)
            target = "mw_" + re.sub(r"^core/", "", folder).replace("/", "_")
            yield Room(target, tuple(values["FOLDERS"] or [folder]), tuple(values["DEPS"]))

    def room_of(self, path: str):
        owners = [(len(folder), room) for room in self.rooms for folder in room.folders
                  if path.startswith(folder + "/")]
        return max(owners, key=lambda owner: owner[0])[1] if owners else None

    def linked(self, room: Room) -> set:
        by_target = {r.target: r for r in self.rooms}
        seen, queue = set(), [room.target]
        while queue:
            target = queue.pop()
            if target not in seen:
                seen.add(target)
                queue += by_target[target].dependencies if target in by_target else ()
        return seen

    def includes(self) -> Iterator[tuple]:
        for file in self.code:
            if file.parts[0] in ("core", "ui"):
                for included in INCLUDE.findall(self.text(file)):
                    yield file, included


def check_order(repository: Repository) -> Iterator[Finding]:
    for file, included in repository.includes():
        room = repository.room_of(file.as_posix())
        other = repository.room_of(included)
        if file.parts[0] == "core" and not room:
            yield Finding("order", f"{file}: the folder belongs to no room; "
                          "add it to mw_room in core/CMakeLists.txt")
        elif file.parts[0] == "core" and not included.startswith("core/"):
            yield Finding("order", f"{file}: includes {included}; core must not know "
                          + included.split("/")[0])
        elif included.startswith("app/"):
            yield Finding("order", f"{file}: includes {included}; ui must not know app")
        elif room and other and other.target not in repository.linked(room):
            yield Finding("order", f"{file}: includes {included}, but {room.target} does not link "
                          f"{other.target}; move the declaration to a room that both link, or change DEPS of mw_room")


def check_circles(repository: Repository) -> Iterator[Finding]:
    graph: dict = {}
    for file, included in repository.includes():
        source, target = file.parent.as_posix(), Path(included).parent.as_posix()
        if source != target and target in repository.folders:
            graph.setdefault(source, {}).setdefault(target, f"{file} includes {included}")
    reachable = {}
    for start in graph:
        seen, queue = set(), [start]
        while queue:
            for folder in graph.get(queue.pop(), ()):
                if folder not in seen:
                    seen.add(folder)
                    queue.append(folder)
        reachable[start] = seen
    for source, targets in graph.items():
        for target, example in targets.items():
            if source in reachable.get(target, ()):
                yield Finding("circle", f"{source}: includes {target}, which leads back to it "
                              f"({example}); move what both need to a room below them")


def check_readmes(repository: Repository) -> Iterator[Finding]:
    for room in sorted({"/".join(folder.split("/")[:2]) for folder in repository.folders if "/" in folder}):
        readme = repository.root / room / "README.md"
        if not readme.exists():
            yield Finding("readme", f"{room}: README.md is missing; describe purpose, main types and extension points")
        elif (lines := len(text_of(readme).splitlines())) > README_LINES:
            yield Finding("readme", f"{room}/README.md has {lines} lines; shorten it to {README_LINES}")


def check_documents(repository: Repository) -> Iterator[Finding]:
    present = {file.name for file in repository.files}
    absent = [name for name in OUTSIDE_DOCUMENTS if name + ".md" not in present]
    names = "|".join(absent or ["\0"])
    pattern = re.compile(rf"(?<![\w/-])(?:{names})\.md\b|\bshared/(?:design|reference)\b")
    for file in repository.files:
        if file.suffix not in TEXT_SUFFIXES:
            continue
        for number, line in enumerate(repository.text(file).splitlines(), 1):
            for reference in pattern.findall(line):
                yield Finding("document", f"{file}:{number}: refers to {reference}, which is not "
                              "in the repository; name the upstream source instead")


def check_paths(repository: Repository) -> Iterator[Finding]:
    present = {str(file) for file in repository.files}
    pattern = re.compile(r"(?<![\w/.-])(?:core|ui|app|tests|benchmarks|scripts)/[\w/.-]+\.(?:h|cpp|py|sh|md)\b")
    for file in repository.files:
        if file.suffix not in {".h", ".cpp", ".md"} or "fixtures" in file.parts:  # fixtures cite other repositories
            continue
        for number, line in enumerate(repository.text(file).splitlines(), 1):
            for path in pattern.findall(line):
                if path not in present and "NAME" not in path:
                    yield Finding("path", f"{file}:{number}: refers to {path}, which does not exist")


def declared_names(code: str) -> Iterator[tuple]:
    code = without_comments(code)
    for match in TYPE_DECLARATION.finditer(code):
        yield "type", match.group(1) or match.group(2)
    for match in FUNCTION_DECLARATION.finditer(code):
        yield "function", match.group(1)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def is_retired_function(name: str) -> bool:
    return name in RETIRED_FUNCTIONS or name.startswith(RETIRED_PREFIXES)


def check_vocabulary(repository: Repository) -> Iterator[Finding]:
    files = {snake_case(name) for name in RETIRED_TYPES} | set(RETIRED_FUNCTIONS)
    for file in repository.code:
        if file.stem in files or file.stem.startswith(RETIRED_PREFIXES):
            yield Finding("vocabulary", f"{file}: the file has a retired name; name it for its main type")
        for kind, name in declared_names(repository.text(file)):
            if name in RETIRED_TYPES if kind == "type" else is_retired_function(name):
                yield Finding("vocabulary", f"{file}: declares {kind} {name}, a retired name; use the field's term")


def check_unique(repository: Repository) -> Iterator[Finding]:
    first: dict = {}
    for file in repository.code:
        if file.parts[0] not in ("core", "ui") or file.suffix != ".h":
            continue
        for names in NAMED_TYPE.findall(without_comments(repository.text(file))):
            name = "".join(names)
            if first.setdefault(name, file).parent != file.parent:
                yield Finding("unique", f"{file}: declares {name}, as {first[name]} does; give it a name that says "
                              "what it is, or use that type by its own name")


# Lines of the first comment of a file, without the licence.
def first_comment(code: str) -> str:
    lines = []
    for line in code.splitlines():
        if not line.startswith("//"):
            break
        if "SPDX" not in line:
            lines.append(line)
    return "\n".join(lines)


def check_headers(repository: Repository) -> Iterator[Finding]:
    for file in repository.code:
        if file.suffix != ".cpp" or file.parts[:2] != ("core", "engine"):
            continue
        if file.with_suffix(".h") in repository.code or re.search(r"\w\.h\b", first_comment(repository.text(file))):
            continue
        yield Finding("header", f"{file}: has no header of its own name; "
                      'add one, or begin with a comment that names it ("Implements attention.h: ...")')


def check_tests(repository: Repository) -> Iterator[Finding]:
    for room in sorted({folder.split("/")[1] for folder in repository.folders if folder.startswith("core/")}):
        if not any(file.parts[:2] == ("tests", room) for file in repository.code):
            yield Finding("tests", f"core/{room}: there is no tests/{room} with tests of this room")


COUNTED = ("answer axis block chip column confounder copy device edit error event experiment expert file finding folder "
           "layer line message model page piece plan point problem prompt request result row run sample section server "
           "step test token value warning").split()
TRANSLATED = re.compile(r'\btr\(\s*("(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*)(\s*,)?')


# The plural of a counted noun after a number; not units such as tokens/s.
def counts_without_form(text: str) -> bool:
    plurals = "|".join(re.sub("y$", "ie", noun) + "s" for noun in COUNTED)
    return bool(re.search(rf"%\d+ (?:\w+ )?(?:{plurals})\b(?!/)|^1 [a-z]", text))


def check_texts(repository: Repository) -> Iterator[Finding]:
    for file in repository.code:
        if file.parts[0] != "ui":
            continue
        code = without_comments(repository.text(file))
        for match in TRANSLATED.finditer(code):
            text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match.group(1)))
            if not match.group(2) and counts_without_form(text):
                yield Finding("text", f'{file}: "{text}" has no plural form; use tr("%n row(s)", nullptr, n)')
            if text.startswith((" ", ", ", "\\n")):
                yield Finding("text", f'{file}: "{text}" is a piece of a sentence; translate the whole with arguments')
        for match in re.finditer(r'("_s|\)) \+ (?:\w+::)?tr\(|\btr\("(?:[^"\\]|\\.)*"\) \+ ', code):
            line = code.count("\n", 0, match.start()) + 1
            if "chip(" not in code.splitlines()[line - 1]:
                yield Finding("text", f"{file}: adds a translated text to another; translate the whole with arguments")


# Where a brace that is open at `start` closes.
def closing_brace(code: str, start: int) -> int:
    depth = 0
    for at in range(start, len(code)):
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        if depth == 0:
            return at
    return len(code)


# Functions that a class declares itself; bodies, nested types and initial values do not count.
def count_methods(body: str) -> int:
    flat, depth = [], 0
    for character in body:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0 and character != "}":
            flat.append(character)
        elif character in "{}" and depth < 2:
            flat.append(";")
    statements = re.sub(r"\b(?:public|private|protected|signals|\w+ slots)\s*:", "", "".join(flat)).split(";")
    declares = re.compile(r"^[^=(]*\(")
    return sum(1 for statement in statements
               if declares.match(re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", statement)).strip())
               and not re.match(r"\s*(?:friend|using|static_assert|struct|class|enum)\b", statement))


def check_methods(repository: Repository) -> Iterator[Finding]:
    for file in repository.code:
        if file.parts[0] != "ui" or file.suffix != ".h":
            continue
        code = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', without_comments(repository.text(file)))
        for match in re.finditer(r"(?<!enum )\b(?:class|struct)\s+(\w+)(?:\s+final)?\s*(?::[^;{()]*)?\{", code):
            methods = count_methods(code[match.end():closing_brace(code, match.end() - 1)])
            if methods > CLASS_METHODS:
                yield Finding("methods", f"{file}: {match.group(1)} declares {methods} functions; divide it by what it "
                              f"does, to at most {CLASS_METHODS}")


# Opening a store reads files, which the thread of the window must not wait for.
def check_stores(repository: Repository) -> Iterator[Finding]:
    opened = re.compile(r"\bStore\s*[({]|\bStore\s+\w+\s*[({]|make_(?:unique|shared)<(?:store::)?Store>")
    for file in repository.code:
        if file.parts[0] == "ui" and file.parts[:2] != ("ui", "session"):
            if opened.search(without_comments(repository.text(file))):
                yield Finding("store", f"{file}: opens the run store; use StoreReader, with_store() or KeptStore of "
                              "ui/session/store_reader.h")


# An Experiment keeps the values that were read from its document; another bind() would read them twice.
def check_binding(repository: Repository) -> Iterator[Finding]:
    for file in repository.code:
        if file.parts[0] in ("core", "app", "ui") and file.parts[:2] != ("core", "experiment"):
            if re.search(r"\bexperiment::bind\(", without_comments(repository.text(file))):
                yield Finding("binding", f"{file}: binds a document; use Experiment::config() or valid_values()")


CHECKS = (check_order, check_circles, check_readmes, check_documents, check_paths, check_unique, check_vocabulary, check_headers,
          check_tests, check_texts, check_methods, check_stores, check_binding)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Checks the structure of the repository.")
    default_root = Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=Path, default=default_root, help="folder of the repository")
    return parser.parse_args()


def main() -> int:
    repository = Repository(parse_arguments().root.resolve())
    findings = list(dict.fromkeys(f"{finding.rule}: {finding.message}" for check in CHECKS
                                  for finding in check(repository)))
    print("\n".join(findings) or f"{len(repository.files)} files, {len(repository.rooms)} rooms: no findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
