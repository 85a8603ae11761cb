#!/usr/bin/env python3
"""Runs a fuzz target on what it knows and on what libFuzzer makes of that, for a minute.

It starts from the seeds that the target writes, from the small files of the test data, and from
what earlier runs in this build folder found worth keeping (<build>/fuzz/NAME/corpus). An input that
crashes, leaks, holds more than 64 MB or takes more than a second of processor time ends the run; it
is kept in <build>/fuzz/NAME/found, which later runs try first.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LARGEST = 8192  # bytes of an input


def data_files():
    """The small files of the shared test data, whatever they are of."""
    folder = pathlib.Path(os.environ.get("HEDDLE_TEST_DATA", ROOT.parent / "shared" / "data"))
    return [file for file in sorted(folder.rglob("*"))
            if file.is_file() and file.stat().st_size <= LARGEST]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="a .cpp file of this folder, without its ending")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    options, more = parser.parse_known_args()  # more: options of libFuzzer, "-seed=7"

    program = options.build.resolve() / "bin" / f"fuzz_{options.name}"
    folder = options.build.resolve() / "fuzz" / options.name
    seeds, corpus, found = (folder / name for name in ("seeds", "corpus", "found"))
    shutil.rmtree(seeds, ignore_errors=True)
    for each in (seeds, corpus, found):
        each.mkdir(parents=True, exist_ok=True)
    subprocess.run([program, f"--write-seeds={seeds}"], check=True)
    for number, file in enumerate(data_files()):
        shutil.copyfile(file, seeds / f"data-{number}")

    known = set(found.iterdir())
    log = folder / "log"
    # The target itself limits an input's seconds and bytes; libFuzzer's are for what never ends.
    command = [program, f"-max_total_time={round(options.minutes * 60)}", f"-max_len={LARGEST}",
               "-timeout=60", "-report_slow_units=60", "-rss_limit_mb=2048",
               "-malloc_limit_mb=256", "-print_funcs=0",
               "-print_final_stats=1", f"-artifact_prefix={found}/", *more, corpus, found, seeds]
    environment = {**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=16",
                   "UBSAN_OPTIONS": "print_stacktrace=1"}
    with open(log, "wb") as output:
        code = subprocess.run(command, env=environment, stdout=output, stderr=output,
                              check=False).returncode
    lines = log.read_text(errors="replace").splitlines()
    if code == 0:
        print("\n".join(line for line in lines if line.startswith("stat::")))
        return 0
    print("\n".join(lines[-60:]))
    for file in sorted(set(found.iterdir()) - known) or sorted(known):
        print(f"fuzz {options.name}: failed on {file}; once more: {program} {file}")
    print(f"fuzz {options.name}: exit code {code}; all it said is in {log}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
