"""share_cache.py HEDDLE FOLDER IDS: eight processes compile into FOLDER side by side, a ninth is
killed meanwhile; each of the eight writes what the file IDS holds, and FOLDER has one entry."""

import os
import subprocess
import sys
import time

heddle, folder, ids = sys.argv[1:]
command = [heddle, "run", "tiny", "--tokens", "5", "--temperature", "0", "--quiet",
           "--threads", "1", "--cache-dir", folder]
killed = subprocess.Popen(command, stdout=subprocess.DEVNULL)
others = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(8)]
time.sleep(0.2)
killed.kill()
killed.wait()
with open(ids, "rb") as file:
    expected = file.read()
for process in others:
    written, _ = process.communicate()
    assert process.returncode == 0, process.returncode
    assert written == expected, written
names = [name for name in os.listdir(folder) if name.endswith(".code")]
assert len(names) == 1, names
