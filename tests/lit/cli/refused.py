"""refused.py COMMAND... -- FILE...: each file must be refused in one line that names it, exit code 1,
with at most 100 ms and 64 MB beyond what it takes to refuse a file that is not there."""
import os
import subprocess
import sys
import tempfile

MOST_SECONDS, MOST_KILOBYTES = 0.1, 64 << 10


def refuse(command, path):
    """Runs the command on the file; its seconds of processor time and its kilobytes."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen([*command, path], stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = code = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        said, lines = out.read(), err.read().splitlines()
    if code != 1 or said or len(lines) != 1 or f": {path}: " not in lines[0]:
        sys.exit(f"{path}: exit code {code}, {said!r}, {lines!r}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


split = sys.argv.index("--")
command, paths = sys.argv[1:split], sys.argv[split + 1:]
own = [refuse(command, "not-there") for _ in range(3)]
seconds, kilobytes = (max(each) for each in zip(*own))
for path in paths:
    for attempt in range(5):  # a busy machine costs processor time too
        spent, held = refuse(command, path)
        if held > kilobytes + MOST_KILOBYTES:
            sys.exit(f"{path}: takes {held} KB, without a file {kilobytes}")
        if spent <= seconds + MOST_SECONDS:
            break
    else:
        sys.exit(f"{path}: takes {spent} s, without a file {seconds}")
