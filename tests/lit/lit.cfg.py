# The suite of text tests. `heddle` and `heddle-opt` in a RUN line are this build's tool; FileCheck,
# not, split-file and the other LLVM tools are found by their names. `%data` is the folder of the
# shared test data, and `REQUIRES: data` skips a test where it is absent.
import os
import pathlib
import shutil
import sys

import lit.formats

config.name = "heddle"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)

repository = pathlib.Path(__file__).resolve().parents[2]
data = pathlib.Path(os.environ.get("HEDDLE_TEST_DATA", repository.parent / "shared" / "data"))
if data.is_dir():
    config.available_features.add("data")
config.substitutions.append(("%data", str(data)))

with open("/proc/cpuinfo", encoding="utf-8") as info:
    flags = next((line.split(":")[1].split() for line in info if line.startswith("flags")), [])
config.available_features.update(
    flag for flag in ("avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni") if flag in flags)

config.environment["PATH"] = os.pathsep.join(
    [config.heddle_tools, config.llvm_tools, os.environ["PATH"]])
# Compiled code is kept from test to test, but not from an earlier run.
kept = os.path.join(config.test_exec_root, "cache")
shutil.rmtree(kept, ignore_errors=True)
config.environment["XDG_CACHE_HOME"] = kept
# Nor are choices measured on this machine.
config.environment["XDG_CONFIG_HOME"] = os.path.join(config.test_exec_root, "config")
tool = os.path.join(config.heddle_tools, "heddle-tool")
config.substitutions += [
    (r"%\{python\}", sys.executable),
    (r"\bheddle-opt\b", f"{tool} opt"),
    (r"(?<![-/\w.])heddle(?![-/\w.])", tool),
]
