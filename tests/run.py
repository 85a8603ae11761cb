#!/usr/bin/env python3
"""Runs the test suite of a build folder and sums it up.

Every test that ctest knows counts by the cases it wrote to <build>/test-results/<test>.xml (both
GoogleTest and lit do), and as one case if it wrote none. The last line is always
`N passed, N failed, N skipped`.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Tally:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []

    def add(self, name, status, reason=""):
        if status == "passed":
            self.passed += 1
        elif status == "skipped":
            self.skipped.append((name, reason))
        else:
            self.failed.append(name)

    def line(self):
        return f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"


def first_line(text):
    """Of a skip message; GoogleTest puts the place of the skip on a line before it."""
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    lines = [line for line in lines if not re.match(r"^\S+:\d+$|^Skipped$", line)]
    return lines[0] if lines else ""


def case_status(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed", ""
    skip = case.find("skipped")
    if skip is not None:
        return "skipped", first_line(skip.get("message") or skip.text)
    return "passed", ""


def add_cases(tally, test, ctest_status, results):
    """Adds the cases of one test of ctest, read from the file it wrote, to the tally."""
    try:
        cases = list(xml.parse(results).getroot().iter("testcase"))
    except (OSError, xml.ParseError):
        cases = []
    if not cases:
        tally.add(test, ctest_status)
        return
    failed_before = len(tally.failed)
    for case in cases:
        if case.get("status") == "notrun":
            continue  # filtered away or disabled
        suite, name = case.get("classname") or "", case.get("name") or ""
        tally.add(f"{test}: {suite}.{name}" if suite else f"{test}: {name}", *case_status(case))
    if ctest_status == "failed" and len(tally.failed) == failed_before:
        tally.add(f"{test} (did not end well)", "failed")


def run_ctest(build, arguments):
    """Runs ctest with its output passed on and returns {test: status}."""
    summary = build / "test-results" / "ctest.xml"
    command = ["ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error",
               "--output-junit", str(summary), *arguments]
    if not any(re.match(r"-j|--parallel", argument) for argument in arguments):
        command += ["-j", str(len(os.sched_getaffinity(0)))]
    code = subprocess.run(command, check=False).returncode
    statuses = {}
    if summary.exists():
        for case in xml.parse(summary).getroot().iter("testcase"):
            status = {"run": "passed", "notrun": "skipped", "disabled": "skipped"}
            statuses[case.get("name")] = status.get(case.get("status"), "failed")
            if case.find("skipped") is not None:
                statuses[case.get("name")] = "skipped"
    if code and "failed" not in statuses.values():
        statuses["ctest"] = "failed"
    return statuses


def data_folder():
    return pathlib.Path(os.environ["HEDDLE_TEST_DATA"])


def main():
    parser = argparse.ArgumentParser(prog="heddle test", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release",
                        help="the build folder")
    options, arguments = parser.parse_known_args()
    build = options.build.resolve()
    os.environ.setdefault("HEDDLE_TEST_DATA", str(ROOT.parent / "shared" / "data"))

    shutil.rmtree(build / "test-results", ignore_errors=True)
    (build / "test-results").mkdir(parents=True)
    statuses = run_ctest(build, arguments)
    tally = Tally()
    for test, status in sorted(statuses.items()):
        add_cases(tally, test, status, build / "test-results" / f"{test}.xml")

    print()
    for name, reason in tally.skipped:
        print(f"skipped  {name}" + (f": {reason}" if reason else ""))
    for name in tally.failed:
        print(f"failed   {name}")
    good = not tally.failed and tally.passed
    if os.environ.get("HEDDLE_CI") and tally.skipped and data_folder().is_dir():
        print(f"the test data is there ({data_folder()}), so nothing may be skipped")
        good = False
    print(tally.line(), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
