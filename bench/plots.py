# SPDX-License-Identifier: Apache-2.0
"""What the plots of all benchmarks have in common.

A driver calls draw(): it runs a script in an environment of its own, into which matplotlib comes from PyPI. The script
calls style() and lines(), and gets FIGURES (JSON) and the folder of the pictures as its arguments.
"""
import subprocess
import venv

import core

ENVIRONMENT = core.OUT / "scaling-venv"
PYTHON = ENVIRONMENT / "bin/python"


def draw(script, file, folder=core.ROOT / "docs/pictures"):
    if not PYTHON.exists():
        core.note("installing matplotlib from PyPI")
        venv.create(ENVIRONMENT, with_pip=True)
        core.output_of([PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "matplotlib"], 300)
    subprocess.run([PYTHON, core.ROOT / script, file, folder], check=True, timeout=300)


def style():
    """The same picture from the same figures, with text that can be searched. Returns pyplot."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "orrery", "svg.fonttype": "none", "font.size": 10, "axes.grid": True,
                                "grid.alpha": 0.3, "legend.fontsize": 8, "axes.titlesize": 9})
    from matplotlib import pyplot

    return pyplot


def lines(axes, rows, by, x, y, label="{}", **style_of_lines):
    """A line for each value that the rows have under `by`."""
    groups = {}
    for row in rows:
        groups.setdefault(row[by], []).append(row)
    for name, some in groups.items():
        some.sort(key=lambda r: r[x])
        axes.plot([r[x] for r in some], [r[y] for r in some], "o-", label=label.format(name), markersize=4,
                  **style_of_lines)


def save(figure, folder, name):
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
