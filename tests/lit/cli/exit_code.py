"""exit_code.py <code> <command>... runs the command and checks its exit code. An error of the command must
be a single line on standard error that begins with "heddle: ", where the code says it is the data's."""
import subprocess
import sys

expected, command = int(sys.argv[1]), sys.argv[2:]
run = subprocess.run(command, stderr=subprocess.PIPE, check=False)
errors = run.stderr.decode()
sys.stderr.write(errors)
if run.returncode != expected:
    sys.exit(f"exit code {run.returncode}, expected {expected}: {' '.join(command)}")
if expected == 1 and not (errors.count("\n") == 1 and errors.startswith("heddle: ")):
    sys.exit(f"not one line of error: {errors!r}")
