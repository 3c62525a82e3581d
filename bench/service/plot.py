# SPDX-License-Identifier: Apache-2.0
"""Draws figures 4, 5 and 6 for docs/reference/services.md: plot.py FIGURES FOLDER. Run by `./run bench service --paper`."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import plots  # noqa: E402


def lines(axes, rows, by, x, label, **style):
    plots.lines(axes, rows, by, x, "k", label, **style)
    axes.set(ylabel="thousand requests a second", xlabel=x)
    axes.legend()


def short_run(requests):
    return f"simulated: one short run with one seed, {requests} requests of each client"


def draw(file, folder):
    pyplot = plots.style()
    figures = json.loads(file.read_text())

    def save(name, painter, how, width=6):
        if name not in figures:
            return
        figure, axes = pyplot.subplots(figsize=(width, 3.6), layout="constrained")
        painter(axes, figures[name], how)
        plots.save(figure, folder, f"service_{name}")

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
