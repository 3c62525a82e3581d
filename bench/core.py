#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Orrery and its peers in one run and says which targets are met.

The driver of `./run bench core`. It installs and builds the peers, runs them and build/release/bench_core in turn,
round after round, prints the medians in one table and writes them to build/bench/core.json. What is not installed or
fails is `absent`: it is never guessed.
"""
import argparse
import dataclasses
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "build/bench"
PEERS_OUT = OUT / "peers"
BUILT = ROOT / "build" / os.environ.get("ORRERY_BENCH_PRESET", "release")  # the folder of the benchmarks
BENCH_CORE = BUILT / "bench_core"
BUDGET_S = 350  # no further round starts if it would end after this

# What Orrery is to reach. A clause is an operator and a number, or a factor x the best of other metrics of this run.
TARGETS = {
    "call_inline_ns": "<= 10",
    "post_same_pe_ns": "<= 15",
    "ring_1k_hop_ns": "<= 20",
    "ring_100k_hop_ns": "<= 70",
    "ring_1k_receive_hop_ns": "<= 35",
    "call_pe_rtt_ns": "<= 2.5 x floor_cacheline_rtt_ns",
    "call_node_rtt_ns": "<= 3 x floor_cacheline_rtt_ns",
    "call_node_sleep_rtt_us": "<= 1.3 x floor_futex_rtt_us",
    "post_pe_rate_m": ">= 30",
    "post_node_rate_m": ">= 1.2 x openmpi_rate_m",
    "fanin_100_rate_m": ">= 2 x go_fanin_100_rate_m",
    "calls_100_rate_m": ">= 10 and >= 2 x go_calls_100_rate_m",
    "calls_node_7_rate_k": ">= 3 x unix_calls_7_rate_k, mq_calls_7_rate_k, zeromq_calls_7_rate_k, "
                           "nanomsg_calls_7_rate_k",
    "bulk_node_gbps": ">= 1.5 x openmpi_bulk_gbps",
    "barrier_64_us": "<= 5",
    "ring_64_hop_us": "<= 0.1",
    "spawn_ns": "<= 150",
    "idle_bytes": "<= 128",
    "promise_reply_ns": "<= 60",
    "latch_wait_ns": "<= 60",
    "channel_hop_ns": "<= 60",
    "receive_any_hop_ns": "<= 45",
    "when_border_ns": "<= 10",
    "monitor_bytes": "<= 64",
    "on_end_ns": "<= 100",
    "blocked_bytes": "<= 4700",
    "startup_ms": "<= 30",
    "idle_cpu_percent": "<= 0.5",
    "compile_s": "<= 3",
}


class Failure(Exception):
    """One program could not be run or did not say what it should; the message is one line."""


def higher_is_better(metric):
    return "_rate_" in metric or metric.endswith(("_gbps", "_k"))


def best(metric, values):
    return (max if higher_is_better(metric) else min)(values)


# --- running programs -----------------------------------------------------------------------------------------------

def telling_line(text):
    """Of all a program said, the line that names an error, else the last one."""
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()] or ["no output"]
    return next((line for line in lines if re.search(r"\berror\b", line)), lines[-1])


def end_group(process):
    """Ends a program we started and all it started: politely (a launcher cleans up), then for good."""
    for sign, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 3)):
        try:
            os.killpg(process.pid, sign)
            process.wait(patience)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def launch(argv, **kwargs):
    try:
        return subprocess.Popen([str(a) for a in argv], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, start_new_session=True, **kwargs)
    except OSError as error:
        raise Failure(f"{argv[0]}: {error.strerror}") from error


def output_of(argv, timeout=60, env=None):
    process = launch(argv, env=os.environ | (env or {}))
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise Failure(f"not finished after {timeout} s") from error
    finally:
        end_group(process)
    if process.returncode != 0:
        raise Failure(f"exit code {process.returncode}: {telling_line(err or out)}")
    return out


# --- the peers ------------------------------------------------------------------------------------------------------

def mpirun(ranks, *flags):
    """Only shared memory is of use on one machine; naming it spares the search for networks."""
    return ["mpirun", "--allow-run-as-root", "-n", ranks, "--mca", "btl", "vader,self", *flags, PEERS_OUT / "openmpi"]


def erlang(*flags):
    """Dirty schedulers that spin would take the CPUs from the normal ones."""
    return ["env", "ERL_CRASH_DUMP_BYTES=0", "erl", *flags, "+sbwtdcpu", "none", "+sbwtdio", "none", "+P", 2000000,
            "-noshell", "-noinput", "-pa", PEERS_OUT, "-s", "erlang_peer", "main"]


@dataclasses.dataclass
class Peer:
    """A program in bench/peers and the ways to run it: of several, the best figure counts for the peer."""
    target: str  # of bench/peers/Makefile
    packages: list
    commands: list
    metrics: list
    absent: str = ""  # why it cannot run


PEERS = {
    "floor": Peer("floor", [], [[PEERS_OUT / "floor"]],
                  ["floor_cacheline_rtt_ns", "floor_futex_rtt_us", "floor_futex_idle_rtt_us", "memcpy_gbps",
                   "floor_random_line_ns"]),
    "openmpi": Peer("openmpi", ["openmpi-bin", "libopenmpi-dev"],
                    [mpirun(2), mpirun(2, "--mca", "btl_vader_single_copy_mechanism", "none")],
                    ["openmpi_pingpong_rtt_us", "openmpi_rate_m", "openmpi_rate_64b_m", "openmpi_bulk_gbps"]),
    "openmpi, 64 ranks": Peer("openmpi", ["openmpi-bin", "libopenmpi-dev"],
                              [mpirun(64, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", 1)],
                              ["openmpi_barrier_64_us", "openmpi_ring_64_hop_us"]),
    "go": Peer("go", ["golang-go"], [["env", "GOMAXPROCS=1", PEERS_OUT / "go"], [PEERS_OUT / "go"]],
               ["go_ring_1k_hop_ns", "go_fanin_100_rate_m", "go_calls_100_rate_m", "go_spawn_ns",
                "go_blocked_bytes"]),
    "caf": Peer("caf", ["libcaf-dev"],
                [[PEERS_OUT / "caf", "--scheduler.max-threads=1"], [PEERS_OUT / "caf"]],
                ["caf_ring_1k_hop_ns", "caf_fanin_100_rate_m", "caf_calls_100_rate_m", "caf_spawn_ns",
                 "caf_pingpong_rtt_us"]),
    "erlang": Peer("erlang", ["erlang-base"],
                   [erlang("+S", "1:1"), erlang("+S", "2:2", "+sbwt", "very_long", "+sbt", "db")],
                   ["erlang_ring_1k_hop_ns", "erlang_fanin_100_rate_m", "erlang_calls_100_rate_m",
                    "erlang_spawn_ns", "erlang_pingpong_rtt_us"]),
    "unix": Peer("unix", [], [[PEERS_OUT / "unix"]],
                 ["unix_calls_7_rate_k", "unix_rtt_us", "unix_rate_m", "unix_bulk_gbps"]),
    "mq": Peer("mq", [], [[PEERS_OUT / "mq"]], ["mq_calls_7_rate_k", "mq_rtt_us"]),
    "zeromq": Peer("zeromq", ["libzmq3-dev"], [[PEERS_OUT / "zeromq"]],
                   ["zeromq_calls_7_rate_k", "zeromq_rtt_us", "zeromq_rate_m", "zeromq_bulk_gbps"]),
    "nanomsg": Peer("nanomsg", ["libnanomsg-dev"], [[PEERS_OUT / "nanomsg"]],
                    ["nanomsg_calls_7_rate_k", "nanomsg_rtt_us", "nanomsg_rate_m"]),
}


def go_tool():
    return shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")


def missing_packages():
    names = {package for peer in PEERS.values() for package in peer.packages}
    if go_tool():
        names.discard("golang-go")
    if not shutil.which("dpkg-query"):
        return []
    state = subprocess.run(["dpkg-query", "-W", "-f=${Package} ${db:Status-Status}\n", *names],
                           capture_output=True, text=True, check=False).stdout
    return sorted(names - {line.split()[0] for line in state.splitlines() if line.endswith(" installed")})


def install(allowed):
    """Installs what the peers need, if we may; else says what is missing."""
    missing = missing_packages()
    if missing and allowed and os.geteuid() == 0 and shutil.which("apt-get"):
        note("installing " + " ".join(missing))
        env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "-qq", "update"], env=env, stdout=subprocess.DEVNULL, check=False)
        for group in [missing, *([m] for m in missing)]:  # all at once; if that fails, what can be had
            subprocess.run(["apt-get", "-qq", "install", "-y", "--no-install-recommends", *group], env=env,
                           stdout=subprocess.DEVNULL, check=False)
            if not missing_packages():
                break
        missing = missing_packages()
    if missing:
        note("peers that need these packages are absent: apt-get install " + " ".join(missing))


def build_peers():
    make = ["make", "-s", "-C", ROOT / "bench/peers", f"OUT={PEERS_OUT}", f"GO={go_tool() or 'go'}"]
    env = {} if "HOME" in os.environ else {"GOCACHE": str(OUT / "go-cache")}
    try:
        output_of([*make, "-k", f"-j{os.cpu_count()}"], 240, env)
        return
    except Failure:
        pass  # now each alone, to know which
    for peer in PEERS.values():
        try:
            output_of([*make, peer.target], 120, env)
        except Failure as failure:
            peer.absent = f"not built: {failure}"


def run_peer(peer, smoke):
    if peer.absent:
        raise Failure(peer.absent)
    found, failure = {}, None
    for command in peer.commands:
        try:
            out = output_of(command, env={"PEER_SECONDS": "0.1" if smoke else "1"})
        except Failure as error:  # one way to run it may fail where another works
            failure = error
            continue
        for line in out.splitlines():
            metric, _, value = line.partition(" ")
            if metric in peer.metrics:
                found.setdefault(metric, []).append(float(value))
    if failure and not found:
        raise failure
    return {metric: best(metric, values) for metric, values in found.items()}


# --- Orrery ---------------------------------------------------------------------------------------------------------

def own(*metrics):
    """A step for each metric that bench_core measures by itself: one that fails takes no other along."""
    def run(metric, smoke):
        out = output_of([BENCH_CORE, "--json", "--only", metric, "--runs", 1, *(["--smoke"] * smoke)])
        try:
            value = float(json.loads(out[out.index("{"):])[metric])
        except (ValueError, KeyError, TypeError) as error:
            raise Failure(f"bench_core gave no figure but: {telling_line(out)}") from error
        if value < 0:  # how bench_core says that a result was wrong
            raise Failure(f"bench_core says {value:g}: its result was wrong")
        return {metric: value}
    return [Step(metric, [metric], functools.partial(run, metric)) for metric in metrics]


def startup(smoke):
    """From just before exec to the first answered call between nodes, by one clock."""
    samples = []
    for _ in range(1 if smoke else 3):
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        out = output_of([BENCH_CORE, "--startup", "--orrery-nodes=4"])
        if not (stamp := re.search(r"\b\d{9,}\b", out)):
            raise Failure(f"no time stamp but: {telling_line(out)}")
        samples.append((int(stamp[0]) - begin) / 1e6)
    return {"startup_ms": statistics.median(samples)}


def cpu_ns(pid):
    """CPU time of all threads of an OS process: exact from schedstat, else in clock ticks."""
    task = pathlib.Path(f"/proc/{pid}/task")
    try:
        return sum(int((t / "schedstat").read_text().split()[0]) for t in task.iterdir())
    except FileNotFoundError:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1e9 / os.sysconf("SC_CLK_TCK")


def idle(smoke):
    """CPU time of four idle nodes together, in percent of one CPU."""
    settle, watch = (0.3, 1) if smoke else (1, 5)
    process = launch([BENCH_CORE, "--idle", watch + 2, "--orrery-nodes=4"])
    try:
        words = process.stdout.readline().split()
        if words[:1] != ["pids"] or len(words) != 5:
            raise Failure(f"no line 'pids a b c d' but: {' '.join(words) or telling_line(process.stderr.read())}")
        time.sleep(settle)
        start, before = time.monotonic_ns(), sum(map(cpu_ns, words[1:]))
        time.sleep(watch)
        used, passed = sum(map(cpu_ns, words[1:])) - before, time.monotonic_ns() - start
        process.wait(10)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"idle nodes: {error}") from error
    finally:
        end_group(process)
    return {"idle_cpu_percent": 100 * used / passed}


def compile_probe(_):
    """A user's file, compiled without ccache."""
    begin = time.monotonic()
    output_of([os.environ.get("CXX", "g++"), "-std=c++23", "-O2", "-I", ROOT, "-I", ROOT / "build/release", "-c",
               ROOT / "bench/core/compile_probe.cpp", "-o", OUT / "compile_probe.o"], env={"CCACHE_DISABLE": "1"})
    return {"compile_s": time.monotonic() - begin}


# --- rounds ---------------------------------------------------------------------------------------------------------

@dataclasses.dataclass
class Step:
    name: str
    metrics: list
    run: object  # smoke -> {metric: value}
    peer: bool = False


def peer_step(name):
    peer = PEERS[name]
    return Step(name, peer.metrics, lambda smoke: run_peer(peer, smoke), peer=True)


def blocks():
    """What is compared stands side by side, so that both meet the same state of the machine."""
    return [
        [peer_step("floor"), *own("call_pe_rtt_ns", "call_node_rtt_ns", "call_node_sleep_rtt_us")],
        [peer_step("openmpi"), *own("post_node_rate_m", "bulk_node_gbps", "post_pe_rate_m")],
        [peer_step("go"), *own("fanin_100_rate_m", "calls_100_rate_m"), peer_step("caf"), peer_step("erlang")],
        [peer_step("unix"), peer_step("mq"), *own("calls_node_7_rate_k"), peer_step("zeromq"), peer_step("nanomsg")],
        [peer_step("openmpi, 64 ranks"), *own("barrier_64_us", "ring_64_hop_us")],
        own("call_inline_ns", "post_same_pe_ns", "ring_1k_hop_ns", "ring_100k_hop_ns", "ring_1k_receive_hop_ns",
            "spawn_ns", "idle_bytes", "blocked_bytes"),
        own("promise_reply_ns", "latch_wait_ns", "channel_hop_ns", "receive_any_hop_ns", "when_border_ns",
            "monitor_bytes", "on_end_ns"),
        [Step("compile", ["compile_s"], compile_probe), Step("start-up", ["startup_ms"], startup),
         Step("idle", ["idle_cpu_percent"], idle)],
    ]


def others_busy():
    """The share of all CPUs that is in use while this program sleeps."""
    def ticks():
        fields = [int(f) for f in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        return sum(fields), fields[3] + fields[4]  # all, idle
    total, unused = ticks()
    time.sleep(0.3)
    total, unused = ticks()[0] - total, ticks()[1] - unused
    return max(0.0, 1 - unused / total) if total else 0.0


def measure(rounds, options):
    """{metric: [value of each round]} and {step: why it failed, or what else to know}."""
    samples, failures, disturbed = {}, {}, 0
    begin = time.monotonic()
    for number in range(rounds):
        passed = time.monotonic() - begin
        if number and passed * (number + 1) / number > BUDGET_S:
            note(f"stopped after {number} of {rounds} rounds: {passed:.0f} s have passed")
            break
        disturbed += others_busy() > 0.15
        order = blocks()
        order = order[number % len(order):] + order[:number % len(order)]  # no metric is always the first
        for step in sum(order, []):
            if options.peers_only and not step.peer or options.only and not set(options.only) & set(step.metrics):
                continue
            if not (step.peer or step.name == "compile" or BENCH_CORE.exists()):
                failures["bench_core"] = f"{BENCH_CORE.relative_to(ROOT)} is not built: what it measures is absent"
                continue
            note(f"round {number + 1} of {rounds}, {time.monotonic() - begin:3.0f} s: {step.name}")
            try:
                for metric, value in step.run(options.smoke).items():
                    samples.setdefault(metric, []).append(value)
            except Failure as failure:
                failures[step.name] = str(failure)
    if disturbed:
        failures["the machine"] = f"other programs were running in {disturbed} rounds: do not trust these figures"
    return samples, failures


# --- the table ------------------------------------------------------------------------------------------------------

def verdict(metric, value, figures):
    """(yes, no or absent, the target with this run's figures in it)"""
    answers, texts = [], []
    for clause in TARGETS[metric].split(" and "):
        operator, number, names = re.fullmatch(r"([<>]=) ([\d.]+)(?: x (.+))?", clause).groups()
        limit, missing, text = float(number), False, f"{operator} {number}"
        if names:
            names = names.split(", ")
            known = [n for n in names if n in figures]
            reference = best(known[0], [figures[n] for n in known]) if known else None
            missing = len(known) < len(names)
            name = next((n for n in known if figures[n] == reference), names[0])
            text += f" x {name}" + (" (the best)" if len(names) > 1 else "")
            limit = limit * reference if known else None
            text += f" = {limit:.4g}" if known else " (absent)"
        texts.append(text)
        if value is None or limit is None:
            answers.append("absent")
        elif not (value <= limit if operator == "<=" else value >= limit):
            answers.append("no")
        else:
            answers.append("absent" if missing else "yes")
    return next((a for a in ("no", "absent") if a in answers), "yes"), " and ".join(texts)


def table(samples, options):
    figures = {metric: statistics.median(values) for metric, values in samples.items()}
    peers = [m for peer in PEERS.values() for m in peer.metrics]
    others = [m for m in samples if m not in TARGETS and m not in peers]
    rows, answers = [("metric", "value", "target", "met", "min - max")], []
    for metric in [*TARGETS, *others, *peers]:
        if options.only and metric not in options.only and metric not in samples:
            continue
        value = figures.get(metric)
        met, target = verdict(metric, value, figures) if metric in TARGETS else ("", "")
        answers += [met] if met else []
        span = f"{min(samples[metric]):.4g} - {max(samples[metric]):.4g}" if value is not None else ""
        rows.append((metric, "absent" if value is None else f"{value:.4g}", target, met, span))
    width = [max(len(row[i]) for row in rows) for i in range(5)]
    for number, row in enumerate(rows):
        if number in (1, 1 + len(TARGETS)) and not options.only or number == 1:
            print("-" * (sum(width) + 8))
        print(f"{row[0]:{width[0]}}  {row[1]:>{width[1]}}  {row[2]:{width[2]}}  {row[3]:{width[3]}}  {row[4]}".rstrip())
    print(f"\n{answers.count('yes')} of {len(answers)} targets met, {answers.count('no')} not, "
          f"{answers.count('absent')} cannot be told")
    return figures, answers


def note(text):
    print(text, file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="rounds; a figure is the median over them (default 5)")
    parser.add_argument("--smoke", action="store_true", help="one short round: does everything run? installs nothing")
    parser.add_argument("--only", type=lambda text: text.split(","), help="NAME,...: only what measures these metrics")
    parser.add_argument("--peers-only", action="store_true", help="leave out Orrery")
    parser.add_argument("--no-install", action="store_true", help="install no packages")
    parser.add_argument("--strict", action="store_true", help="exit code 1 unless every target is met")
    options = parser.parse_args()
    known = {metric for step in sum(blocks(), []) for metric in step.metrics}
    if unknown := set(options.only or []) - known:
        parser.error(f"no such metric: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")

    PEERS_OUT.mkdir(parents=True, exist_ok=True)
    install(allowed=not options.smoke and not options.no_install)
    build_peers()

    samples, failures = measure(1 if options.smoke else max(1, options.runs), options)
    figures, answers = table(samples, options)
    for step, reason in failures.items():
        print(f"{step}: {reason}")
    if not options.only:  # a part does not replace the whole
        report = OUT / "core.json"
        report.write_text(json.dumps(figures, indent=1) + "\n")
        print(f"figures: {report.relative_to(ROOT)}")
    own_failed = set(failures) - set(PEERS) - {"the machine"}
    return 1 if own_failed or options.strict and set(answers) != {"yes"} else 0


if __name__ == "__main__":
    sys.exit(main())
