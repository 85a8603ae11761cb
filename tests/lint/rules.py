"""The rules of the house, each a function from a Tree to (file, line, message) findings."""
import pathlib
import re
import subprocess

FOLDERS = ("codegen", "frontend", "ir", "passes", "runtime", "tests")

TOP_LEVEL_FILES = {"CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md", "LICENSE",
                   "README.md", "heddle"}

# What each folder may include of ours. frontend and tests may include everything.
ARROWS = {
    "runtime": {"runtime"},
    "ir": {"ir"},
    "passes": {"passes", "ir"},
    "codegen": {"codegen", "ir", "runtime"},
}

# Third parties that only some files may include: {prefix: pattern of files that may}.
OUTSIDE = {
    r"mlir/|mlir-c/|llvm/|llvm-c/": r"(ir|passes|codegen)/|frontend/compiler/|tests/(unit|bench|fuzz|differential)/",
    r"llvm/(CodeGen|ExecutionEngine|IR|MC|Object|Passes|Target)/|"
    r"mlir/ExecutionEngine/": r"codegen/jit/|tests/unit/codegen/",
    r"tbb/|oneapi/": r"runtime/parallel\.cpp$",
    r"CLI/": r"frontend/cli/.*\.(cpp|h)$",
    r"nlohmann/": r"frontend/formats/json_reader\.h$",
    r"gtest/|gmock/|benchmark/": r"tests/",
}

MOST_LINES = 600

# Longer files, each with the reason why it may be: {path: reason}.
LONG_FILES = {
}

# Words that no file of the project holds: notes to oneself, paths of one machine.
FORBIDDEN = {
    r"\b(TODO|FIXME|XXX|HACK)\b": "settle it or file an issue",
    r"(?<![\w./])/(work|root|home/\w+)/": "a path of one machine",
    r"(?<![\w./$])/tmp/": "a fixed path for temporary files; ask the system for a fresh one",
}
FORBIDDEN_EXEMPT = ("tests/lint/",)

SOURCE = re.compile(r"\.(cpp|h|td)$")
TEXT = re.compile(r"\.(cpp|h|td|py|md|txt|json|mlir|test|cmake|in|sh)$|^heddle$|^\.ci/")
INCLUDE = re.compile(r'^\s*#?\s*include\s+["<]([^">]+)[">]')


class Tree:
    """The files of a checkout, by their paths from its root."""

    def __init__(self, root, paths):
        self.root = pathlib.Path(root)
        self.paths = sorted(paths)
        self.texts = {}

    def lines(self, path):
        if path not in self.texts:
            self.texts[path] = (self.root / path).read_text(encoding="utf-8").splitlines()
        return self.texts[path]

    def matching(self, pattern):
        return [path for path in self.paths if re.search(pattern, path)]

    def includes(self):
        for path in self.matching(SOURCE):
            for number, line in enumerate(self.lines(path), 1):
                if found := INCLUDE.match(line):
                    yield path, number, found.group(1)


def include_arrows(tree):
    """The folders include each other along the arrows of the design only."""
    for path, number, included in tree.includes():
        source, target = path.split("/")[0], included.split("/")[0]
        if target in FOLDERS and target not in ARROWS.get(source, FOLDERS):
            yield path, number, f"{source}/ must not include {target}/ ({included})"


def outside_includes(tree):
    """LLVM, TBB, CLI11 and the test libraries stay where they belong."""
    for path, number, included in tree.includes():
        for prefix, files in OUTSIDE.items():
            if re.match(prefix, included) and not re.match(files, path):
                yield path, number, f"{included} may be included only in files that match {files}"


def public_headers(tree):
    """Headers of the public API lead to no header of MLIR, however long the way."""
    reached = {}
    todo = [(path, path) for path in tree.matching(r"^frontend/[^/]+\.h$")]
    edges = {}
    for path, _, included in tree.includes():
        edges.setdefault(path, []).append(included)
    while todo:
        path, public = todo.pop()
        if path in reached:
            continue
        reached[path] = public
        for included in edges.get(path, []):
            if re.match(r"(mlir|llvm)(-c)?/|(ir|passes|codegen)/", included):
                yield public, 1, f"leads to {included} by way of {path}"
            todo.append((included, public))


def file_length(tree):
    """No file is longer than the limit without a written reason."""
    for path in tree.matching(r"\.(cpp|h|td|py|mlir)$"):
        length = len(tree.lines(path))
        if length > MOST_LINES and path not in LONG_FILES:
            yield path, MOST_LINES, f"{length} lines; split it, or give the reason in LONG_FILES"
    for path in LONG_FILES:
        if path not in tree.paths or len(tree.lines(path)) <= MOST_LINES:
            yield path, 1, "is in LONG_FILES without need"


def top_level(tree):
    """The top level holds the six folders, the known root files and dot files."""
    for entry in sorted({path.split("/")[0] for path in tree.paths}):
        if not (entry in FOLDERS or entry in TOP_LEVEL_FILES or entry.startswith(".")):
            yield entry, 1, "does not belong at the top level"


def chapters(tree):
    """Every folder has its README chapter."""
    for folder in FOLDERS:
        if f"{folder}/README.md" not in tree.paths:
            yield f"{folder}/README.md", 1, "is missing: what the folder is, includes, and how to add"


def pragma_once(tree):
    """Every header guards itself."""
    for path in tree.matching(r"\.h$"):
        if "#pragma once" not in tree.lines(path):
            yield path, 1, "has no #pragma once"


def pass_files(tree):
    """One pass a file, and the file is named as the pass."""
    defined = {}
    for path in tree.matching(r"^(passes|codegen)/passes\.td$"):
        for number, line in enumerate(tree.lines(path), 1):
            if found := re.match(r'\s*def\s+(\w+)\s*:\s*(?:Interface)?Pass<"([^"]+)"', line):
                defined[found.group(1).upper()] = (path, number, found.group(2))
    homes = {}
    for path in tree.matching(r"^(passes|codegen)/.*\.cpp$"):
        for number, line in enumerate(tree.lines(path), 1):
            if found := re.match(r"#define GEN_PASS_DEF_(\w+)", line):
                homes.setdefault(found.group(1), []).append((path, number))
    for name, (table, number, argument) in defined.items():
        wanted = argument.replace("-", "_") + ".cpp"
        for path, line in homes.pop(name, []):
            if path.split("/")[-1] != wanted:
                yield path, line, f"holds the pass {argument}, so it should be {wanted}"
        if not tree.matching(rf"^{table.split('/')[0]}/(.*/)?{wanted}$"):
            yield table, number, f"the pass {argument} has no file {wanted}"
    for name, places in homes.items():
        for path, line in places:
            yield path, line, f"defines a pass {name} that no passes.td declares"


def forbidden_words(tree):
    """Nothing is left to do later, and nothing names one machine."""
    for path in tree.matching(TEXT):
        if path.startswith(FORBIDDEN_EXEMPT):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            for pattern, reason in FORBIDDEN.items():
                if found := re.search(pattern, line):
                    yield path, number, f"'{found.group(0)}': {reason}"


def file_names(tree):
    """Sources are named in snake_case."""
    for path in tree.matching(SOURCE):
        if not re.fullmatch(r"[a-z][a-z0-9_]*\.(cpp|h|td)", path.split("/")[-1]):
            yield path, 1, "is not snake_case"


def formatting(tree):
    """Sources are as clang-format leaves them; `clang-format-22 -i FILE` mends one."""
    paths = tree.matching(r"\.(cpp|h)$")
    run = subprocess.run(["clang-format-22", "--dry-run", *paths], cwd=tree.root, check=True,
                         capture_output=True, text=True) if paths else None
    places = re.findall(r"^(\S+?):(\d+):\d+: warning: code should be", run.stderr if run else "", re.M)
    for path, line in {path: line for path, line in reversed(places)}.items():
        yield path, int(line), "is not formatted"


ALL = (include_arrows, outside_includes, public_headers, file_length, top_level, chapters,
       pragma_once, pass_files, forbidden_words, file_names, formatting)
