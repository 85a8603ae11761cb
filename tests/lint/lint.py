#!/usr/bin/env python3
"""Checks a checkout against the rules of the house: lint.py [--xml FILE] [ROOT]."""
import argparse
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as xml

import rules


def checkout(root):
    """The files git knows or would take; without git, all but hidden and built ones."""
    listing = subprocess.run(
        ["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        capture_output=True, check=False)
    if listing.returncode == 0:
        paths = listing.stdout.decode().split("\0")
    else:
        paths = []
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if name != "build" and not name.startswith(".")]
            paths += [os.path.relpath(os.path.join(folder, name), root) for name in files]
    return rules.Tree(root, {path for path in paths if os.path.isfile(os.path.join(root, path))})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--xml", help="write the result of each rule there as JUnit XML")
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parents[2])
    options = parser.parse_args()
    tree = checkout(options.root)
    suite = xml.Element("testsuite", name="lint")
    broken = 0
    for rule in rules.ALL:
        findings = [f"{path}:{line}: {message}" for path, line, message in rule(tree)]
        case = xml.SubElement(suite, "testcase", name=rule.__name__)
        if findings:
            broken += 1
            xml.SubElement(case, "failure").text = "\n".join(findings)
            print(f"{rule.__name__}: {rule.__doc__}", *findings, sep="\n  ")
    if options.xml:
        xml.ElementTree(suite).write(options.xml)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
