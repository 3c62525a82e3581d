# SPDX-License-Identifier: Apache-2.0
"""Draws figures 4, 5 and 6 for docs/reference/services.md: plot.py FIGURES FOLDER. Run by `./run bench service --paper`."""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


def lines(axes, rows, by, x, label, **style):
    groups = {}
    for row in rows:
        groups.setdefault(row[by], []).append(row)
    for name, some in groups.items():
        some.sort(key=lambda r: r[x])
        axes.plot([r[x] for r in some], [r["k"] for r in some], "o-", label=label.format(name), markersize=4, **style)
    axes.set(ylabel="thousand requests a second", xlabel=x)
    axes.legend()


def short_run(requests):
    return f"simulated: one short run with one seed, {requests} requests of each client"


def draw(file, folder):
    matplotlib.rcParams.update({"svg.hashsalt": "orrery", "svg.fonttype": "none", "font.size": 10, "axes.grid": True,
                                "grid.alpha": 0.3, "legend.fontsize": 8, "axes.titlesize": 9})
    figures = json.loads(file.read_text())

    def save(name, painter, how, width=6):
        if name not in figures:
            return
        figure, axes = pyplot.subplots(figsize=(width, 3.6), layout="constrained")
        painter(axes, figures[name], how)
        figure.savefig(folder / f"service_{name}.svg", metadata={"Date": None})

    def levels(axes, rows, how):
        lines(axes, rows, "level", "cores", "{}")
        axes.set(yscale="log", title="Levels of consistency, $2^{20}$ items, P = 10\n" + how)

    def granularity(axes, rows, how):
        lines(axes, rows, "level", "P", "{}")
        axes.set(xscale="log", yscale="log", title=f"P, with P x G constant, {rows[0]['cores']} cores\n" + how)

    def throttle(axes, rows, how):
        lines(axes, rows, "K", "W", "K = {}")
        axes.set(xscale="log", ylim=(0, None),
                 title=f"W and K, {rows[0]['cores']} cores, P = {rows[0]['P']}, sequential (paper)\n" + how)

    save("figure4", levels, short_run("64"))
    save("figure5", granularity, short_run("32"))
    save("figure6", throttle, short_run("16 + W"))
    save("here4", levels, "measured on one machine")
    save("here5", granularity, "measured on one machine")
    save("here6", throttle, "measured on one machine")


if __name__ == "__main__":
    draw(*map(pathlib.Path, sys.argv[1:]))
