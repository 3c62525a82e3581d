# SPDX-License-Identifier: Apache-2.0
"""Simulates figures 4 to 8 of the paper (Lu 2001), and the same programs on 1,024 machines: `./run bench shared --paper`.

The programs are examples/shared, in worlds of machines with one PE each. What a step of a loop takes on a machine is
given (MACHINES), so the figures are the same wherever they are made. They go to build/bench/shared_paper.json and, as
plots, to docs/pictures/shared_*.svg.
"""
import argparse
import json
import re

import core
import plots

PROGRAMS = core.ROOT / "build/release/examples"
NETWORKS = {"atm": "400us:100us:10us:17M", "10g": "10g", "200g": "200g"}
# Nanoseconds of one step: a multiplication and addition of each product, a comparison of a sort, a cell, a node of the
# search. Those of 1999 are from table 3 of the paper, or guessed (cell, node); those of today from docs/performance.md.
PAPER = {"mm2_512": 412.0, "mm2_704": 359.0, "compare": 106.6, "cell": 150.0, "node": 2000.0}
TODAY = {"mm2_512": 1.95, "mm2_704": 0.67, "compare": 3.26, "cell": 1.5, "node": 40.0}
MACHINES = {"atm": PAPER, "10g": TODAY, "200g": TODAY}
FEW = [1, 2, 4, 8, 16]
MANY = [1, 4, 16, 64, 256, 1024]


def simulate(program, network, pes, *options):
    world = f"--orrery-sim=machines={pes},net={NETWORKS[network]}"
    return core.output_of([PROGRAMS / program, *options, world], 900)


def number(pattern, text):
    return float(re.search(pattern, text)[1])


def mm2(size):
    def seconds(network, pes, *more):
        said = simulate("mm2", network, pes, "--size", size, "--runs", 1, "--loop", "rows", "--step-ns",
                        MACHINES[network].get(f"mm2_{size}", MACHINES[network]["mm2_512"]), "--together", *more)
        return number(r"PEs: ([\d.]+) s", said)
    return seconds


def opening(size, network, pes, *more):
    """Figure 6: what it takes to open the scopes of both products, between barriers."""
    said = simulate("mm2", network, pes, "--size", size, "--runs", 1, "--loop", "rows", "--overhead", *more)
    return number(r"scopes: ([\d.]+) s", said)


def psrs(keys):
    def seconds(network, pes):
        said = simulate("psrs", network, pes, "--keys", keys, "--compare-ns", MACHINES[network]["compare"])
        return number(r"PEs: ([\d.]+) s", said)
    return seconds


def diffusion(size, steps):
    def seconds(network, pes):
        said = simulate("diffusion", network, pes, "--size", size, "--steps", steps, "--tiles", "--cell-ns",
                        MACHINES[network]["cell"])
        return size * size * steps / 1e6 / number(r"([\d.]+) million cells", said)
    return seconds


def tsp(cities, depth):
    def seconds(network, pes):
        said = simulate("tsp", network, pes, "--cities", cities, "--depth", depth, "--seed", 3, "--node-ns",
                        MACHINES[network]["node"])
        return number(r"a second, ([\d.]+) s", said)
    return seconds


def speedups(name, seconds, networks, counts):
    """Rows of a figure. The time on one machine is that of the same program, alone."""
    rows = []
    for network in networks:
        alone = None
        for pes in counts:
            core.note(f"{name}: {network}, {pes}")
            took = seconds(network, pes)
            alone = alone or took
            rows.append({"network": network, "pes": pes, "s": took, "speedup": alone / took})
    return rows


def overheads(size, counts):
    rows = []
    for how, flags in (("one allgather (a cache of the team)", ["--together"]), ("requests of each", [])):
        for pes in counts[1:]:
            core.note(f"figure6: {how}, {pes}")
            rows.append({"how": how, "pes": pes, "s": opening(size, "atm", pes, *flags)})
    return rows


def figures(smoke):
    few, many = ([1, 2], [1, 3]) if smoke else (FEW, MANY)
    all_networks = list(NETWORKS)
    small, large, keys6, keys8 = (32, 40, 2000, 3000) if smoke else (512, 704, 6_000_000, 8_000_000)
    heat = (32, 3) if smoke else (2048, 20)
    towns = (8, 2) if smoke else (16, 3)
    return {
        "figure4": lambda: speedups("figure4", mm2(small), all_networks, few),
        "figure5": lambda: speedups("figure5", mm2(large), all_networks, few),
        "figure6": lambda: overheads(large, few),
        "figure7": lambda: speedups("figure7", psrs(keys6), all_networks, few),
        "figure8": lambda: speedups("figure8", psrs(keys8), all_networks, few),
        "diffusion": lambda: speedups("diffusion", diffusion(*heat), all_networks, few),
        "tsp": lambda: speedups("tsp", tsp(*towns), all_networks, few),
        "mm2_many": lambda: speedups("mm2_many", mm2(small), all_networks, many),
        "psrs_many": lambda: speedups("psrs_many", psrs(keys8), all_networks, many),
        "diffusion_many": lambda: speedups("diffusion_many", diffusion(*heat), all_networks, many),
        "tsp_many": lambda: speedups("tsp_many", tsp(*towns), all_networks, many),
    }


def heat(file, smoke):
    """The state of the diffusion after some steps, for a picture."""
    core.output_of([PROGRAMS / "diffusion", "--size", 32 if smoke else 256, "--steps", 200, "--picture", file,
                    "--orrery-pes=2"])


def main(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="little of everything: does it run?")
    parser.add_argument("--figures", nargs="*", help="only these (figure4, ...), the others as they were")
    options = parser.parse_args(words)
    core.OUT.mkdir(parents=True, exist_ok=True)
    file = core.OUT / "shared_paper.json"
    made = figures(options.smoke)
    found = json.loads(file.read_text()) if file.exists() and options.figures is not None else {}
    for name in made if options.figures is None else options.figures:
        found[name] = made[name]()
        if not options.smoke:
            file.write_text(json.dumps(found, indent=1) + "\n")
    heat(file.with_name("shared_heat.pgm"), options.smoke)
    if not options.smoke:
        plots.draw("bench/shared/plot.py", file)
    return 0
