# SPDX-License-Identifier: Apache-2.0
"""The tables and figures of Gingras 2018, chapter 4 and appendix B: `./run bench task --paper`.

Measures, writes build/bench/task_paper.json, prints the tables and draws the plots of docs/thesis.md. matplotlib comes from PyPI, into an environment of its
own in build/bench. --only sort|database|variable measures a part, and keeps what the file has of the others.
"""
import argparse
import json
import os
import pathlib
import statistics

import programs
from programs import core
import plots

STRATEGIES = ("notify", "wait", "immediate")
PEERS = {name: core.Peer(name, packages, [], []) for name, packages in (
    ("unix_db", []), ("mq_db", []), ("nanomsg_db", ["libnanomsg-dev"]), ("shm_variable", []), ("unix_variable", []),
    ("nanomsg_variable", ["libnanomsg-dev"]))}


def averaged(samples, best):
    """Of results of sample_sort: the mean of each number, or the fastest."""
    if best:
        return min(samples, key=lambda s: s["wait_s"])
    mean = {key: statistics.mean(s[key] for s in samples) for key in samples[0] if key != "buckets"}
    buckets = zip(*(s["buckets"] for s in samples))
    return mean | {"buckets": [[statistics.mean(column) for column in zip(*each)] for each in buckets]}


def measure_sort(options):
    """Table 4.2, 4.3, B.1 to B.5 and figures 4.3 to 4.5. Buckets on so many PEs as there are cores at most."""
    cores, largest = os.cpu_count(), options.numbers
    found = {"cores": cores, "sizes": [], "stability": [], "buckets": []}
    for n in (largest // 4, largest // 2, largest):
        samples = [programs.sample_sort(n, 4, min(4, cores), "quick") for _ in range(options.runs)]
        quick = [programs.quick_sort(n) for _ in range(options.runs if options.best else 1)]
        found["sizes"].append({"n": n, "quick_s": min(quick)} | averaged(samples, options.best))
        if n == largest:
            found["stability"] = [[s["read_s"], s["wait_s"]] for s in samples]
    for k in (1, 2, 4, 8, 16):
        samples = [programs.sample_sort(largest, k, min(k, cores), "quick") for _ in range(options.runs)]
        found["buckets"].append({"k": k, "pes": min(k, cores)} | averaged(samples, options.best))
    return found


def measure_database(options):
    """Figures 4.7 and 4.8, table 4.4: requests a second of each client, the best of three times."""
    counts = (1, 2, 3) if options.smoke else (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
    found = {"clients": list(counts)}

    def best(measure):
        """Of each count the best of several rounds."""
        rounds = [measure() for _ in range(1 if options.smoke else 3)]
        return [max(values) for values in zip(*rounds)]

    def tasks(strategy):
        return [1e3 * programs.database(c, strategy, 2_000 if options.smoke else 50_000)["k"] / c for c in counts]

    def over(name):
        said = programs.figures(programs.peer_output(PEERS[f"{name}_db"], counts, 0.1 if options.smoke else 0.2))
        return [1e3 * said[f"{name}_db_{c}_k"] / c for c in counts]

    for strategy in STRATEGIES:
        found[strategy] = best(lambda strategy=strategy: tasks(strategy))
    for name in ("unix", "mq", "nanomsg"):
        try:
            found[name] = best(lambda name=name: over(name))
        except core.Failure as failure:
            core.note(f"{name}: absent, {failure}")
    return found


def measure_variable(options):
    """Figures 4.9 and 4.10: seconds until all clients have updated the variable, the best of three times."""
    def seconds(clients, writes):
        all_found = [once(clients, writes) for _ in range(1 if options.smoke else 3)]
        return {metric: min(found[metric] for found in all_found) for metric in all_found[0]}

    def once(clients, writes):
        found = {}
        for name in ("shm", "unix", "nanomsg"):
            try:
                found |= programs.figures(programs.peer_output(PEERS[f"{name}_variable"], (clients, writes), 1))
            except core.Failure as failure:
                core.note(f"{name}: absent, {failure}")
        for more in ([], ["answered"]):
            said = core.output_of([programs.program("variable"), clients, writes, *more, f"--orrery-pes={os.cpu_count()}"], 120)
            found |= programs.figures(said)
        return found
    most = 100 if options.smoke else 20_000
    return {
        "threads": [{"clients": c} | seconds(c, most // 4) for c in (1, 2, 4, 8, 16)],
        "writes": [{"writes": w} | seconds(4, w) for w in (most // 8, most // 4, most // 2, most)],
    }


PARTS = {"sort": measure_sort, "database": measure_database, "variable": measure_variable}


def print_tables(found):
    if sort := found.get("sort"):
        print("\nTable 4.3: read, wait\n" + "\n".join(f"| {r:.3f} s | {w:.3f} s |" for r, w in sort["stability"]))
        print("\nTable B.1: N, read, spawn, splitters, wait; qsort")
        for row in sort["sizes"]:
            print(f"| {row['n']} | " + " | ".join(f"{row[k]:.4f} s" for k in ("read_s", "spawn_s", "splitters_s", "wait_s", "quick_s")) + " |")
        for b in range(4):
            print(f"\nTable B.{b + 2}: N, sample, splitters, propagation, rebuild, sort, count of bucket {b + 1}")
            for row in sort["sizes"]:
                *times, count = row["buckets"][b]
                print(f"| {row['n']} | " + " | ".join(f"{t:.4f} s" for t in times) + f" | {count:.0f} |")
        print("\nFigures 4.4, 4.5: buckets, PEs, wait, gain over qsort")
        reference = sort["sizes"][-1]["quick_s"]
        for row in sort["buckets"]:
            print(f"| {row['k']} | {row['pes']} | {row['wait_s']:.3f} s | {reference / row['wait_s']:.2f} |")
    if database := found.get("database"):
        names = [name for name in database if name != "clients"]
        print("\nFigures 4.7, 4.8: clients; requests a second of each, by " + ", ".join(names))
        for i, clients in enumerate(database["clients"]):
            print(f"| {clients} | " + " | ".join(f"{database[name][i]:.0f}" for name in names) + " |")
    for figure, key in (("4.9", "threads"), ("4.10", "writes")):
        if rows := found.get("variable", {}).get(key):
            print(f"\nFigure {figure}: " + ", ".join(rows[0]))
            for row in rows:
                print("| " + " | ".join(f"{value:.4g}" for value in row.values()) + " |")


def main(words):
    parser = argparse.ArgumentParser(prog="./run bench task --paper", description=__doc__.split("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="small numbers, no plots: does everything run?")
    parser.add_argument("--no-peers", action="store_true", help="leave out what is not Orrery's")
    parser.add_argument("--runs", type=int, default=5, help="a time of the sort is the mean of so many (default 5)")
    parser.add_argument("--best", action="store_true", help="the fastest of them instead: where other programs are at work")
    parser.add_argument("--numbers", type=int, default=100_000_000, help="the largest array (default 100,000,000; the thesis: 500,000,000)")
    parser.add_argument("--only", choices=PARTS, help="a part")
    parser.add_argument("--folder", type=pathlib.Path, default=core.ROOT / "docs/pictures", help="of the plots")
    options = parser.parse_args(words)
    if options.smoke:
        options.runs, options.numbers = 1, 40_000
    if options.no_peers:
        for peer in PEERS.values():
            peer.absent = "--no-peers"
    programs.build_peers(PEERS)
    programs.build("database", "sample_sort", "variable")
    file = core.OUT / "task_paper.json"
    found = json.loads(file.read_text()) if file.exists() and not options.smoke else {}
    for name, part in PARTS.items():
        if options.only in (None, name):
            core.note(name)
            found[name] = part(options)
    print_tables(found)
    if not options.smoke:
        file.write_text(json.dumps(found, indent=1) + "\n")
        plots.draw("bench/task/plot.py", file, options.folder)
    return 0
