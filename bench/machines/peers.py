# SPDX-License-Identifier: Apache-2.0
"""What users of Python would pick, between two network namespaces: mpi4py, charm4py and Ray, from PyPI's wheels."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import venv

from launchers import ENVIRONMENT, HOST_NAMES, HOSTS, OUT, Absent, run

FOLDER = pathlib.Path(__file__).resolve().parent / "peers"
PYTHON = OUT / "python-peers"
PEERS = ["mpi4py", "charm4py", "ray"]
INSTALL_SECONDS, RUN_SECONDS = 300, 150


def install(peer, may_install):
    """Into an environment of their own, wheels only. Absent says why it is not there."""
    python = PYTHON / "bin/python"
    if not python.exists() and may_install:
        venv.create(PYTHON, with_pip=True)
    if python.exists() and subprocess.run([python, "-c", f"import numpy, {peer}"], capture_output=True).returncode == 0:
        return python
    if not may_install:
        raise Absent("it is not installed")
    code, _, errors = run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:",
                           "numpy", peer], ENVIRONMENT, INSTALL_SECONDS)
    if code != 0:
        raise Absent(f"no wheel can be installed: {errors.strip()[-200:]}")
    return python


def command_of(peer, python, folder):
    """What runs a peer on both hosts."""
    program = FOLDER / f"{peer}_peer.py"
    if peer == "mpi4py":
        return [HOSTS, "openmpi", "2", python, program]
    if peer == "ray":
        return [HOSTS, "none", "1", python, program, HOSTS, HOST_NAMES[1], folder / "ray"]
    nodes = folder / "nodes"
    nodes.write_text("group main\n" + "".join(f"  host {name}\n" for name in HOST_NAMES))
    return [HOSTS, "none", "1", python, "-m", "charmrun.start", "+p2", "++nodelist", nodes, "++remote-shell", HOSTS,
            python, program]


def measure(peer, figures_in, may_install):
    """{metric: value} of one run."""
    python = install(peer, may_install)
    # Ray's sockets lie there, and their paths are short.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-"))
    environment = ENVIRONMENT | {"PYTHONPATH": str(FOLDER), "PATH": f"{PYTHON}/bin:{ENVIRONMENT['PATH']}"}
    try:
        code, said, errors = run(command_of(peer, python, folder), environment, RUN_SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if code == 77:
        raise Absent("this system lets nobody make network namespaces here")
    found = figures_in(said)
    if not found:
        raise Absent(f"it does not run: exit code {code}: {(errors or said).strip()[-300:]}")
    if code != 0:
        print(f"{peer}: exit code {code} after it was measured", file=sys.stderr)
    return found
