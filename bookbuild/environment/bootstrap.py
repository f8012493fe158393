"""Creates the environment .venv and installs the book's packages into it.

Uses only the standard library, and also runs on Pythons that are too old for the book, so that it
can say so in one line. Usage: python bookbuild/environment/bootstrap.py [--index ADDRESS]
ADDRESS is the package index to get PyTorch from; "default" means pip's own index.
"""

from __future__ import print_function

import os
import re
import shutil
import subprocess
import sys
import threading
import time

OLDEST = (3, 11)
VENV = ".venv"
LOG = os.path.join(VENV, "install.log")
STAMP = os.path.join(VENV, ".ready")
# PyTorch's index of CPU-only builds; on Linux, pip's default build comes with CUDA.
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PATIENCE = 2.0  # seconds to wait for the index to answer

# What pip prints, and a readable explanation; the first match wins.
CAUSES = [
    (
        "No space left on device|Disk quota exceeded",
        "the disk is full: the environment needs about 4 GB",
    ),
    (
        "NewConnectionError|NameResolutionError|Temporary failure in name resolution"
        "|Network is unreachable|ConnectTimeout|ReadTimeoutError|ProxyError|Connection refused"
        "|Max retries exceeded",
        "the package index cannot be reached: check the network (or pip's proxy setting) "
        "and run the command again",
    ),
    (
        "unable to execute|command '?[^ ]*(cc|gcc|clang|cl.exe)'? failed"
        "|No such file.*'(cc|gcc|c\\+\\+)'|Microsoft Visual C\\+\\+"
        "|error: subprocess-exited-with-error"
        "|Failed building wheel",
        "a package has no ready-made build for this machine and compiling it failed: install a "
        "C compiler and Python's headers (Debian, Ubuntu: build-essential python3-dev), or use "
        "another Python with PYTHON=...",
    ),
    (
        "No matching distribution found for (\\S+)",
        "no build of {0} exists for this Python and machine: try another Python with PYTHON=...",
    ),
]


def main(arguments):
    """Set up the environment; return 0, or print what went wrong in one line and return 1."""
    problem = python_problem(sys.version_info, sys.executable)
    if problem is None:
        problem = make_environment() or install(arguments)
    if problem is not None:
        print("error: " + problem, file=sys.stderr)
        return 1
    with open(STAMP, "w") as stamp:
        stamp.write(sys.version + "\n")
    return 0


def python_problem(version, executable):
    """An error message if this Python is too old, else None."""
    if tuple(version[:2]) >= OLDEST:
        return None
    return (
        "the book needs Python {0}.{1} or newer, and {2} is Python {3}.{4}: "
        "name a newer one, for example: make book PYTHON=python3.12"
    ).format(OLDEST[0], OLDEST[1], executable, version[0], version[1])


def make_environment():
    """Create .venv with this Python unless it exists; return an error message on failure."""
    if os.path.exists(python_of_environment()):
        return None
    print("Creating the environment {0} with Python {1}".format(VENV, sys.version.split()[0]))
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", VENV],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    if made.returncode == 0:
        return None
    if "ensurepip" in made.stdout:
        return "this Python has no venv: install it (Debian, Ubuntu: apt install python3-venv)"
    return "the environment could not be created: " + made.stdout.strip().splitlines()[-1]


def python_of_environment():
    """The interpreter inside .venv."""
    folder = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    return os.path.join(VENV, *folder)


def install(arguments):
    """Install the pinned packages, showing progress; return an error message on failure."""
    command = [python_of_environment(), "-m", "pip", "install", "--disable-pip-version-check"]
    # Most modules are never imported, so let Python compile each one the first time it's imported.
    command += ["--no-compile", "--progress-bar", "off", "--retries", "2", "--timeout", "60"]
    command += ["--constraint", "constraints.txt", "--editable", ".[book,gpu,pdf,test]"]
    index, told = torch_index("".join(arguments[1:2]), sys.platform, has_nvidia_gpu, answers)
    command += ["--extra-index-url", index] if index else []
    if told:
        print(told)
    print("Installing the packages (a few minutes on the first run; details in {0})".format(LOG))
    start = time.time()
    lines = []
    with open(LOG, "w") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
        )
        for line in process.stdout:
            log.write(line)
            lines.append(line)
            show_progress(line, time.time() - start)
    if process.wait() == 0:
        print("Installed in {0:.0f} s".format(time.time() - start))
        return None
    return cause("".join(lines)) + " (details in {0})".format(LOG)


def torch_index(asked, platform, has_gpu, answers):
    """An extra index to get PyTorch from (or None), and a line that explains the choice.

    Args:
        asked: the address on the command line, "default" for pip's own index, or "".
        platform: as in `sys.platform`.
        has_gpu: returns whether there is an NVIDIA GPU.
        answers: returns whether an address responds in time.
    """
    if asked:
        return (None, None) if asked == "default" else (asked, None)
    if not platform.startswith("linux") or has_gpu():
        return None, None
    if answers(CPU_INDEX):
        return CPU_INDEX, (
            "PyTorch: CPU-only build from {0}, since this machine has no NVIDIA GPU "
            "(for another index: TORCH_INDEX=address; for pip's own: TORCH_INDEX=default)"
        ).format(CPU_INDEX)
    return None, (
        "PyTorch: pip's own build, since {0} does not answer; with CUDA it takes several GB "
        "(for another index: TORCH_INDEX=address)"
    ).format(CPU_INDEX)


def has_nvidia_gpu():
    """Whether an NVIDIA GPU driver is installed."""
    return os.path.exists("/proc/driver/nvidia/version") or shutil.which("nvidia-smi") is not None


def answers(address, patience=PATIENCE):
    """Whether an index responds in time, including its DNS lookup."""
    found = []

    def ask():
        from urllib.request import urlopen  # imported here, since Python 2 doesn't have it

        try:
            found.append(urlopen(address + "/torch/", timeout=patience).status == 200)
        except Exception:
            found.append(False)

    asking = threading.Thread(target=ask)
    asking.daemon = True  # a DNS lookup that hangs must not keep the program running
    asking.start()
    asking.join(patience)
    return found == [True]


def show_progress(line, seconds):
    """Show the lines that say how far pip has gotten."""
    match = re.match(
        r"(Collecting|Downloading|Building wheel for|Installing collected) ?(\S*)", line
    )
    if not match or "/" in match.group(2):
        return
    what = match.group(1).lower().replace(" collected", "") + " " + match.group(2)
    if match.group(1).startswith("Installing"):
        what = "writing all packages to disk"
    if sys.stdout.isatty():
        print("\r\033[K  {0:4.0f} s  {1}".format(seconds, what[:60]), end="")
        if match.group(1).startswith("Installing"):
            print()
    elif match.group(1).startswith("Installing"):
        print("  {0:.0f} s: {1}".format(seconds, what))
    sys.stdout.flush()


def cause(output):
    """A readable explanation of why an installation failed."""
    for pattern, text in CAUSES:
        match = re.search(pattern, output)
        if match:
            return text.format(*match.groups()) if "{0}" in text else text
    last = [line.strip() for line in output.splitlines() if line.strip()] or ["pip gave no reason"]
    return "the packages could not be installed: " + last[-1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
