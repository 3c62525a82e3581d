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

    def save(number, painter, width=6):
        if f"figure{number}" not in figures:
            return
        figure, axes = pyplot.subplots(figsize=(width, 3.6), layout="constrained")
        painter(axes, figures[f"figure{number}"])
        figure.savefig(folder / f"service_figure{number}.svg", metadata={"Date": None})

    def levels(axes, rows):
        lines(axes, rows, "level", "cores", "{}")
        axes.set(yscale="log", title="Levels of consistency, $2^{20}$ items, P = 10\n" + short_run("64"))

    def granularity(axes, rows):
        lines(axes, rows, "level", "P", "{}")
        axes.set(xscale="log", yscale="log", title="P, with P x G constant, 176 cores\n" + short_run("32"))

    def throttle(axes, rows):
        lines(axes, rows, "K", "W", "K = {}")
        axes.set(xscale="log", ylim=(0, None),
                 title="W and K, 192 cores, P = 4, sequential (paper)\n" + short_run("16 + W"))

    save(4, levels)
    save(5, granularity)
    save(6, throttle)


if __name__ == "__main__":
    draw(*map(pathlib.Path, sys.argv[1:]))
