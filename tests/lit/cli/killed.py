"""killed.py <signal> <pipe> <command>... starts the command, which waits to open the pipe, and ends it by the signal."""
import os
import signal
import subprocess
import sys
import time

number = signal.Signals["SIG" + sys.argv[1]]
os.mkfifo(sys.argv[2])
run = subprocess.Popen(sys.argv[3:], stdout=subprocess.DEVNULL)
time.sleep(1)
assert run.poll() is None, f"ended by itself with {run.returncode}"
run.send_signal(number)
code = run.wait(timeout=10)
assert code == -number, f"ended with {code}"
os.unlink(sys.argv[2])
