"""Medians, tables, CSV files and plots."""

import csv
import json
import subprocess
from statistics import median

from . import system


def medians(rows, keys, value):
    """Median of `value(row)` for each combination of `keys`, in order of first appearance."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(value(row))
    return {group: median(values) for group, values in groups.items()}


def ratio(rows, contender, column, reference):
    """Median over the rounds of `column` of a contender divided by `reference(rows of the same round)`.

    None when no round has both.
    """
    ratios = []
    for index in sorted({row["round"] for row in rows}):
        peers = [row for row in rows if row["round"] == index]
        mine = next((row[column] for row in peers if row["contender"] == contender), None)
        base = reference(peers)
        if mine is not None and base:
            ratios.append(mine / base)
    return median(ratios) if ratios else None


def of(name, column):
    """Reference for a ratio: that contender in the same round."""
    return lambda peers: next((row[column] for row in peers if row["contender"] == name), None)


def number(value, digits=0):
    return "–" if value is None else f"{value:,.{digits}f}"


def table(header, rows):
    """A Markdown table: first column left, the others right."""
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return lines


def write_csv(path, rows):
    if not rows:
        return
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_markdown(path, title, lines, failures):
    failed = (
        ["", "Failed runs, which are in no median:", "", *(f"* {failure}" for failure in failures)] if failures else []
    )
    path.write_text("\n".join([f"# {title}", "", *system.description(), "", *lines, *failed, ""]))
    print(f"wrote {path}")


def plot(path, title, x, y, series, log_x=False, log_y=False, marks=()):
    """Draws lines: `series` is a list of (name, points). `marks` are the places on the x axis that get a label."""
    spec = {
        "out": str(path),
        "title": title,
        "x": x,
        "y": y,
        "log_x": log_x,
        "log_y": log_y,
        "marks": list(marks),
        "series": [{"name": name, "points": points} for name, points in series],
    }
    subprocess.run([str(system.PLOT)], input=json.dumps(spec), text=True, check=True)


def bars(path, title, y, names, series):
    """Draws groups of bars: one group a name, one bar a series in it."""
    spec = {
        "out": str(path),
        "title": title,
        "y": y,
        "names": names,
        "bars": [{"name": name, "values": values} for name, values in series],
    }
    subprocess.run([str(system.PLOT)], input=json.dumps(spec), text=True, check=True)
