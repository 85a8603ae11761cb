"""interrupt.py <command>... starts the command, interrupts it after a second, and checks that it ends with 130."""
import signal
import subprocess
import sys
import time

run = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
time.sleep(1)
assert run.poll() is None, f"ended by itself with {run.returncode}"
run.send_signal(signal.SIGINT)
code = run.wait(timeout=10)
assert code == 130, f"exit code {code}"
