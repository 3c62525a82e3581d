# SPDX-License-Identifier: Apache-2.0
"""The programs of tasks that `./run bench task` runs, built with -O2 as a user would (examples are built with -O1), and what they say."""
import glob
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import core  # noqa: E402

COMPILER = core.ROOT / "build/release/orrery-cc"


def sources(of):
    return sorted(glob.glob(str(core.ROOT / of)))


SOURCES = {
    "database": "examples/tasks/database/*.c",
    "sample_sort": "examples/tasks/sample_sort/*.c",
    "airports": "examples/tasks/airports/*.c",
    "variable": "bench/task/variable.c",
}


def program(name):
    return core.OUT / name


def build(*names):
    for name in names:
        core.output_of([COMPILER, "-std=gnu11", "-O2", *sources(SOURCES[name]), "-o", program(name)], 120)


def build_peers(peers):
    """peers: {name: core.Peer}"""
    core.PEERS_OUT.mkdir(parents=True, exist_ok=True)
    for peer in peers.values():
        if peer.absent:
            continue
        try:
            core.output_of(["make", "-s", "-C", core.ROOT / "bench/peers", f"OUT={core.PEERS_OUT}", peer.target], 120)
        except core.Failure as failure:
            peer.absent = f"not built: {failure}"


def peer_output(peer, arguments, seconds):
    if peer.absent:
        raise core.Failure(peer.absent)
    return core.output_of([core.PEERS_OUT / peer.target, *arguments], 120, {"PEER_SECONDS": str(seconds)})


def figures(said):
    """Lines `name value` of a program; others are left out."""
    return {words[0]: float(words[1]) for words in map(str.split, said.splitlines()) if len(words) == 2}


def database(clients, strategy, requests):
    """{"k": thousands of requests a second, "p50_us": ..., "p99_us": ...}; each client is in an OS process of its own."""
    if strategy == "immediate" and clients >= os.cpu_count():
        requests = min(requests, 1_000)  # each keeps a core that others wait for
    said = core.output_of([program("database"), "-g", "-c", clients, "-n", requests // clients, "-s", strategy,
                           f"--orrery-nodes={clients + 1}", "--orrery-pes=1"], 120)
    return {metric.removeprefix(f"db_{clients}_"): value for metric, value in figures(said).items()}


def half_peak(smoke):
    """{"db_p50_us": ..., "db_p99_us": ...} of one client and the server, each awake on its core, with half as many requests as they can do."""
    def one(*more):
        said = core.output_of([program("database"), "-g", "-c", 1, "-n", 2_000 if smoke else 200_000, "-s", "wait", "-w", 8, *more,
                               "--orrery-nodes=2", "--orrery-pes=1", "--orrery-waiting=wait"], 120)
        return {metric.removeprefix("db_1_"): value for metric, value in figures(said).items()}
    found = one("-p", int(2e6 / one()["k"]))
    return {"db_p50_us": found["p50_us"], "db_p99_us": found["p99_us"]}


def sample_sort(numbers, buckets, pes, sorting):
    """{"read_s": ..., "spawn_s": ..., "splitters_s": ..., "wait_s": ..., "buckets": [[sample, ..., numbers], ...]}"""
    said = core.output_of([program("sample_sort"), "-g", "-s", sorting, numbers, buckets, f"--orrery-pes={pes}"], 300)
    return figures(said) | {"buckets": [[float(word) for word in line.split()[2:]] for line in said.splitlines()
                                        if line.startswith("bucket ")]}


def quick_sort(numbers):
    """The thesis' reference: one qsort."""
    return figures(core.output_of([program("sample_sort"), "-q", numbers, "--orrery-pes=1"], 300))["wait_s"]


def translation(smoke):
    """{"orrery_cc_overhead": ...}: the time of the translation over that of gcc -O2 for the same files."""
    def seconds(*command):
        def once():
            begin = time.monotonic()
            core.output_of(command, env={"CCACHE_DISABLE": "1"})
            return time.monotonic() - begin
        return min(once() for _ in range(1 if smoke else 5))
    translated = compiled = 0.0
    out = core.OUT / "translated.i"
    for file in sources("examples/tasks/database/*.c") + sources("examples/tasks/airports/*.c"):
        include = ["-I", core.ROOT]
        if "\nmessage " not in (preprocessed := core.output_of(["gcc", "-E", *include, file])) and "\ntask " not in preprocessed:
            continue
        translated += seconds(COMPILER, "--emit-c", file, "-o", out) - seconds("gcc", "-E", *include, file, "-o", "/dev/null")
        compiled += seconds("gcc", "-O2", "-fpreprocessed", "-c", out, "-o", "/dev/null")
    return {"orrery_cc_overhead": translated / compiled}


def tasks(smoke, only=None):
    """The metrics of bench_task."""
    said = core.output_of([core.BUILT / "bench_task", "--runs", 1, *(["--smoke"] * smoke),
                           *(["--only", ",".join(only)] if only else [])], 120)
    return json.loads(said)
