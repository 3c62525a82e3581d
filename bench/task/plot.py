# SPDX-License-Identifier: Apache-2.0
"""Draws the plots of docs/thesis.md: plot.py FIGURES FOLDER. Run by `./run bench task --paper`, which installs matplotlib."""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

LABELS = {"notify": "tasks, message_notify", "wait": "tasks, message_wait", "immediate": "tasks, message_immediate",
          "unix": "Unix sockets", "mq": "POSIX queues", "nanomsg": "nanomsg", "shm_variable_s": "queue with two mutexes",
          "unix_variable_s": "Unix sockets", "nanomsg_variable_s": "nanomsg", "task_variable_s": "tasks, a message each",
          "task_answered_variable_s": "tasks, with an answer"}


def draw_sizes(axes, found):
    rows = found["sort"]["sizes"]
    millions = [row["n"] / 1e6 for row in rows]
    axes.plot(millions, [row["quick_s"] for row in rows], "o-", label="qsort")
    axes.plot(millions, [row["wait_s"] for row in rows], "o-", label="sample sort, 4 buckets")
    axes.set(xlabel="million numbers", ylabel="seconds", ylim=(0, None), title=f"Figure 4.3, {found['sort']['cores']} cores")


def draw_buckets(axes, found):
    rows = found["sort"]["buckets"]
    axes.plot([row["k"] for row in rows], [row["wait_s"] for row in rows], "o-", label="sample sort")
    axes.axhline(found["sort"]["sizes"][-1]["quick_s"], color="gray", label="qsort")
    axes.set(xscale="log", xlabel="buckets", ylabel="seconds", ylim=(0, None), title="Figure 4.4")


def draw_gain(axes, found):
    rows, reference = found["sort"]["buckets"], found["sort"]["sizes"][-1]["quick_s"]
    axes.plot([row["k"] for row in rows], [reference / row["wait_s"] for row in rows], "o-", label="gain over qsort")
    axes.plot([row["k"] for row in rows], [row["pes"] for row in rows], "--", color="gray", label="cores in use")
    axes.set(xscale="log", xlabel="buckets", ylabel="times as fast", ylim=(0, None), title="Figure 4.5")


def draw_clients(names, title):
    def painter(axes, found):
        for name in names:
            if name in found["database"]:
                thousands = [value / 1e3 for value in found["database"][name]]
                axes.plot(found["database"]["clients"], thousands, "o-", markersize=4, label=LABELS[name])
        axes.set(xlabel="clients", ylabel="thousand requests/s of each client", yscale="log", title=title)
    return painter


def draw_variable(key, x, title):
    def painter(axes, found):
        rows = found["variable"][key]
        for name in rows[0]:
            if name in LABELS:
                axes.plot([row[x] for row in rows], [row[name] for row in rows], "o-", markersize=4, label=LABELS[name])
        axes.set(xlabel="clients" if x == "clients" else "updates of each of 4 clients", ylabel="seconds", yscale="log", title=title)
    return painter


PLOTS = {
    "sort": (draw_sizes, draw_buckets, draw_gain),
    "database": (draw_clients(("wait", "unix", "mq", "nanomsg"), "Figure 4.7"),
                 draw_clients(("notify", "wait", "immediate"), "Figure 4.8")),
    "variable": (draw_variable("threads", "clients", "Figure 4.9"), draw_variable("writes", "writes", "Figure 4.10")),
}


def draw(file, folder):
    matplotlib.rcParams.update({"svg.hashsalt": "orrery", "svg.fonttype": "none", "font.size": 9, "axes.grid": True,
                                "grid.alpha": 0.3, "legend.fontsize": 7})
    found = json.loads(file.read_text())
    for name, painters in PLOTS.items():
        if name not in found:
            continue
        figure, all_axes = pyplot.subplots(1, len(painters), figsize=(3.6 * len(painters), 3.2), layout="constrained")
        for painter, axes in zip(painters, all_axes):
            painter(axes, found)
            axes.legend()
        figure.savefig(folder / f"thesis_{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    draw(*map(pathlib.Path, sys.argv[1:]))
