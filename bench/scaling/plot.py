# SPDX-License-Identifier: Apache-2.0
"""Draws the plots of docs/scaling.md: plot.py FIGURES FOLDER. Run by `./run bench scaling`, which installs matplotlib."""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


def line(axes, rows, x, y, label, **style):
    rows = sorted(rows, key=lambda r: r[x])
    axes.plot([r[x] for r in rows], [r[y] for r in rows], "o-", label=label, markersize=4, **style)


def series(rows, *keys):
    """The rows apart, by what they have in common."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[k] for k in keys), []).append(row)
    return groups.items()


def draw_collectives(axes, rows, network):
    for (net, each), some in series(rows, "net", "each"):
        if net == network:
            line(axes, some, "pes", "us", f"{each} element{'s' * (each > 1)} for each PE")
    axes.set(xscale="log", xlabel="PEs", ylabel="microseconds", title=f"Broadcast and reduction, {network}",
             ylim=(0, None))


def draw_storage(axes, rows):
    for (pes,), some in series(rows, "pes"):
        line(axes, some, "each", "moved", f"{pes} PEs")
    axes.set(xscale="log", yscale="log", xlabel="elements for each PE (n / p)", ylabel="bytes on a PE",
             title="Tables, after a migration wave")


def draw_hops(axes, rows):
    size = max(r["pes"] for r in rows if r["waves"] == 8)
    for row in rows[:5]:
        messages = range(1, len(row["hops"]) + 1)
        axes.plot(messages, row["hops"], "o-", label=f"{row['waves']} waves", markersize=4)
    axes.set(xlabel="message of each sender, after the waves", ylabel="hops", ylim=(0, None), xticks=list(messages),
             title=f"Hops per message, {size} PEs")


def draw_jacobi(axes, rows):
    for (each,), some in series(rows, "each"):
        line(axes, some, "pes", "efficiency", f"{each} block{'s' * (each > 1)} for each PE")
    axes.set(xscale="log", xlabel="PEs", ylabel="efficiency", ylim=(0, 1.05), title="Jacobi, 128 x 128 cells for each PE")


def draw(file, folder):
    matplotlib.rcParams.update({"svg.hashsalt": "orrery", "svg.fonttype": "none", "font.size": 10, "axes.grid": True,
                                "grid.alpha": 0.3, "legend.fontsize": 8})
    measured = json.loads(file.read_text())
    for name, *painters in (("collectives", lambda a, rows: draw_collectives(a, rows, "200g"),
                             lambda a, rows: draw_collectives(a, rows, "10g")),
                            ("storage", draw_storage), ("hops", draw_hops), ("jacobi", draw_jacobi)):
        size = (4.5 * len(painters), 3.4) if len(painters) > 1 else (6, 3.6)
        figure, all_axes = pyplot.subplots(1, len(painters), figsize=size, layout="constrained", squeeze=False)
        for painter, axes in zip(painters, all_axes[0]):
            painter(axes, measured[name])
            axes.legend()
        figure.savefig(folder / f"scaling_{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    draw(*map(pathlib.Path, sys.argv[1:]))
