#!/usr/bin/env python3
"""Every rule finds what it is for, and nothing in a tree that keeps it."""
import pathlib
import tempfile
import unittest
import unittest.mock

import rules

GOOD = {
    "ir/README.md": "", "passes/README.md": "", "codegen/README.md": "", "runtime/README.md": "",
    "frontend/README.md": "", "tests/README.md": "", "README.md": "", ".gitignore": "",
    "runtime/result.h": "#pragma once\n#include <string>\n",
    "runtime/parallel.cpp": "#include <tbb/task_arena.h>\n",
    "ir/ops.h": '#pragma once\n#include "mlir/IR/Builders.h"\n\n#include "ir/ops.h.inc"\n',
    "passes/passes.td": 'def FuseAttention : Pass<"fuse-attention", "func::FuncOp">;\n',
    "passes/fuse_attention.cpp": '#define GEN_PASS_DEF_FUSEATTENTION\n#include "ir/ops.h"\n',
    "codegen/jit/engine.cpp": '#include "llvm/ExecutionEngine/Orc/LLJIT.h"\n',
    "frontend/graph.h": '#pragma once\n#include "runtime/result.h"\n',
    "frontend/compiler/driver.cpp": '#include "passes/fuse.h"\n\n#include "mlir/IR/Builders.h"\n',
    "frontend/cli/arguments.cpp": "#include <CLI/CLI.hpp>\n",
}


class RulesTest(unittest.TestCase):
    def setUp(self):
        # The exceptions are those of the real tree.
        self.enterContext(unittest.mock.patch.object(rules, "LONG_FILES", {}))

    def findings(self, rule, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                file = pathlib.Path(root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            return [f"{path}:{line}" for path, line, _ in rule(rules.Tree(root, files))]

    def expect(self, rule, changes, *places):
        self.assertEqual(self.findings(rule, {**GOOD, **changes}), list(places))

    def test_a_good_tree_passes(self):
        for rule in rules.ALL:
            self.assertEqual(self.findings(rule, GOOD), [], rule.__name__)
            self.assertTrue(rule.__doc__, rule.__name__)

    def test_include_arrows(self):
        self.expect(rules.include_arrows, {"ir/a.cpp": '\n#include "runtime/result.h"\n'}, "ir/a.cpp:2")
        self.expect(rules.include_arrows, {"passes/a.cpp": '#include "codegen/a.h"\n'}, "passes/a.cpp:1")
        self.expect(rules.include_arrows, {"codegen/a.cpp": '#include "passes/a.h"\n'}, "codegen/a.cpp:1")
        self.expect(rules.include_arrows, {"ir/a.td": 'include "codegen/a.td"\n'}, "ir/a.td:1")
        self.expect(rules.include_arrows, {"tests/unit/a.cpp": '#include "codegen/a.h"\n'})

    def test_outside_includes(self):
        for path, header in [("runtime/a.cpp", "mlir/IR/Builders.h"), ("runtime/a.h", "tbb/tbb.h"),
                             ("codegen/a.cpp", "llvm/ExecutionEngine/Orc/Core.h"),
                             ("frontend/a.cpp", "llvm/ADT/SmallVector.h"),
                             ("frontend/compiler/a.cpp", "CLI/CLI.hpp"),
                             ("ir/a.cpp", "gtest/gtest.h")]:
            self.expect(rules.outside_includes, {path: f"#include <{header}>\n"}, f"{path}:1")

    def test_public_headers(self):
        self.expect(rules.public_headers,
                    {"frontend/model.h": '#include "frontend/inner/a.h"\n',
                     "frontend/inner/a.h": '#include "mlir/IR/Builders.h"\n'}, "frontend/model.h:1")

    def test_file_length(self):
        self.expect(rules.file_length, {"ir/a.cpp": "\n" * 601}, "ir/a.cpp:600")
        self.expect(rules.file_length, {"ir/a.cpp": "\n" * 600})
        rules.LONG_FILES["ir/a.cpp"] = "a list"
        self.expect(rules.file_length, {"ir/a.cpp": "\n" * 601})
        self.expect(rules.file_length, {"ir/a.cpp": "\n" * 600}, "ir/a.cpp:1")

    def test_top_level(self):
        self.expect(rules.top_level, {"notes.md": "", "lib/a.cpp": ""}, "lib:1", "notes.md:1")

    def test_chapters(self):
        files = {path: text for path, text in GOOD.items() if path != "ir/README.md"}
        self.assertEqual(self.findings(rules.chapters, files), ["ir/README.md:1"])

    def test_pragma_once(self):
        self.expect(rules.pragma_once, {"ir/a.h": "#ifndef A\n"}, "ir/a.h:1")

    def test_pass_files(self):
        self.expect(rules.pass_files, {"passes/a.cpp": "#define GEN_PASS_DEF_FUSEATTENTION\n"},
                    "passes/a.cpp:1")
        self.expect(rules.pass_files, {"passes/a.cpp": "#define GEN_PASS_DEF_A\n"}, "passes/a.cpp:1")
        self.expect(rules.pass_files, {"passes/passes.td": GOOD["passes/passes.td"] +
                                       'def FuseMap : Pass<"fuse-map">;\n'}, "passes/passes.td:2")

    def test_forbidden_words(self):
        self.expect(rules.forbidden_words, {"ir/a.cpp": "// TODO\n"}, "ir/a.cpp:1")
        self.expect(rules.forbidden_words, {"README.md": "see /home/me/x\n"}, "README.md:1")
        self.expect(rules.forbidden_words, {"README.md": "see a/tmp/x, $dir/tmp/y and ./work/z\n"})

    def test_file_names(self):
        self.expect(rules.file_names, {"ir/MyOps.cpp": ""}, "ir/MyOps.cpp:1")

    def test_formatting(self):
        self.expect(rules.formatting, {"ir/a.cpp": "int a;\nint  b;\nint  c;\n"}, "ir/a.cpp:2")


if __name__ == "__main__":
    unittest.main()
