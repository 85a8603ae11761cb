"""refused.py COMMAND... -- FILE...: each file must be refused in one line that names it, exit code 1."""
import subprocess
import sys

split = sys.argv.index("--")
for path in sys.argv[split + 1:]:
    run = subprocess.run(sys.argv[1:split] + [path], capture_output=True, text=True, timeout=60)
    lines = run.stderr.splitlines()
    if run.returncode != 1 or run.stdout or len(lines) != 1 or f": {path}: " not in lines[0]:
        sys.exit(f"{path}: exit code {run.returncode}, {run.stdout!r}, {run.stderr!r}")
