# SPDX-License-Identifier: Apache-2.0
"""Draws the plots of docs/shared.md: plot.py FIGURES FOLDER. Run by `./run bench shared --paper`."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import plots  # noqa: E402

# What the text of the paper says of its figures: (PEs, speed-up, who). Its curves cannot be read off exactly.
SAID = {"figure4": [(16, 9.49, "paper: MPICH")],
        "figure5": [(16, 14.0, "paper: Aurora"), (16, 9.94, "paper: MPICH")],
        "figure7": [(16, 3.91 * 1.52, "paper: Aurora"), (16, 3.91, "paper: MPICH")],
        "figure8": [(16, 1.78 * 4.8, "paper: Aurora"), (16, 1.78, "paper: MPICH")]}
NAMES = {"atm": "ATM 155 Mb/s, machines of the paper", "10g": "10 GbE, machines of today",
         "200g": "200 Gb/s, machines of today"}
TITLES = {"figure4": "Figure 4: two products, 512 x 512", "figure5": "Figure 5: two products, 704 x 704",
          "figure7": "Figure 7: 6 million keys", "figure8": "Figure 8: 8 million keys",
          "diffusion": "Diffusion, 2048 x 2048", "tsp": "Travelling salesman, 16 cities",
          "mm2_many": "Two products, 512 x 512", "psrs_many": "8 million keys",
          "diffusion_many": "Diffusion, 2048 x 2048", "tsp_many": "Travelling salesman, 16 cities"}


def speedup(axes, name, rows):
    most = max(row["pes"] for row in rows)
    axes.plot([1, most], [1, most], "--", color="gray", label="ideal")
    plots.lines(axes, [row | {"network": NAMES[row["network"]]} for row in rows], "network", "pes", "speedup")
    for (pes, value, who), marker in zip(SAID.get(name, []), "x+"):
        axes.plot([pes], [value], marker, color="black", label=who, markersize=8)
    if most > 16:
        axes.set(xscale="log", yscale="log", ylim=(0.5, None))
    axes.set(title=TITLES[name], xlabel="PEs, each a machine", ylabel="speed-up")
    axes.legend()


def overhead(axes, _, rows):
    plots.lines(axes, rows, "how", "pes", "s")
    for pes, aurora, mpich in ((2, 0.53, 0.66), (16, 0.98, 8.0)):
        axes.plot([pes], [aurora], "x", color="black", label="paper: Aurora" if pes == 2 else None)
        axes.plot([pes], [mpich], "+", color="black", label="paper: MPICH" if pes == 2 else None)
    axes.set(title="Figure 6: opening the caches, 704 x 704, ATM", xlabel="PEs, each a machine", ylabel="seconds",
             ylim=(0, None))
    axes.legend()


def draw(file, folder):
    pyplot = plots.style()
    figures = json.loads(file.read_text())
    for picture, names in (("mm2", ["figure4", "figure5", "figure6"]), ("psrs", ["figure7", "figure8"]),
                           ("others", ["diffusion", "tsp"]),
                           ("many", ["mm2_many", "psrs_many", "diffusion_many", "tsp_many"])):
        names = [name for name in names if name in figures]
        if not names:
            continue
        columns = 2 if len(names) == 4 else len(names)
        rows = len(names) // columns
        figure, all_axes = pyplot.subplots(rows, columns, figsize=(4.5 * columns, 3.6 * rows), layout="constrained",
                                           squeeze=False)
        for axes, name in zip(all_axes.flat, names):
            (overhead if name == "figure6" else speedup)(axes, name, figures[name])
        plots.save(figure, folder, f"shared_{picture}")
    if (heat := file.with_name("shared_heat.pgm")).exists():
        pyplot.imsave(folder / "shared_diffusion.png", pyplot.imread(heat), cmap="inferno")


if __name__ == "__main__":
    draw(*map(pathlib.Path, sys.argv[1:]))
