"""The micro-benchmarks: the same binaries natively and under preload, on one CPU."""

import json
import subprocess

from . import results, system

# Figure: (program, key of its JSON object, the call that decides it).
FIGURES = {
    "mutex + condvar hand-over": ("mutex_pingpong", "handover_ns", "pthread_cond_wait"),
    "pthread_create + join": ("create_join", "create_join_ns", "pthread_create"),
    "sched_yield switch": ("yield_switch", "switch_ns", "sched_yield"),
    "mutex lock + unlock": ("mutex_uncontended", "lock_unlock_ns", "pthread_mutex_lock"),
    "sem_post + sem_wait": ("mutex_uncontended", "sem_post_wait_ns", "sem_wait"),
    "pthread_getspecific": ("mutex_uncontended", "getspecific_ns", "pthread_getspecific"),
}


def run(args):
    print("micro")
    chosen = system.contenders(args, ["threads", "preloom"])
    programs = list(dict.fromkeys(program for program, *_ in FIGURES.values()))
    rows, failures = [], []
    for index in range(args.rounds):
        for place in range(len(chosen)):
            contender = chosen[(place + index) % len(chosen)]
            for program in programs:
                seconds = min(args.seconds, 1.0)
                try:
                    extra = system.CONTENDERS[contender][1]
                    found = json.loads(system.program(program, [str(seconds)], extra, timeout=60))
                except (system.BenchError, ValueError, subprocess.TimeoutExpired) as error:
                    failures.append(f"{contender}, round {index + 1}: {program}: {error}")
                    continue
                for figure, (owner, key, _) in FIGURES.items():
                    if owner == program:
                        # What is measured by the fastest slice has no CPU time of its own: nothing disturbed it.
                        cpu = found.get(key.replace("_ns", "_cpu_ns"), found[key])
                        row = {"figure": figure, "round": index, "contender": contender, "ns": found[key]}
                        rows.append({**row, "cpu_ns": cpu})
    publish(args, chosen, rows, failures)
    return failures


def publish(args, chosen, rows, failures):
    middle = {
        column: results.medians(rows, ("figure", "contender"), lambda row, column=column: row[column])
        for column in ("ns", "cpu_ns")
    }
    lines = []
    for figure in FIGURES:
        own = [row for row in rows if row["figure"] == figure]
        cells = []
        for column in middle:
            cells += [results.number(middle[column].get((figure, name)), 1) for name in chosen]
            if len(chosen) == 2:
                cells.append(results.number(results.ratio(own, "threads", column, results.of("preloom", column)), 2))
        lines.append([figure, *cells])
        print(f"  {figure}: " + ", ".join(cells))
    header = [""]
    for unit in ("ns", "ns CPU"):
        header += [*(f"{name}, {unit}" for name in chosen), *(["× as fast"] if len(chosen) == 2 else [])]
    text = [
        *results.table(header, lines),
        "",
        f"Medians of {args.rounds} interleaved rounds; each program runs on one CPU, preloom with one worker. “ns” is "
        "elapsed time, in which other programs may have had the CPU; “ns CPU” is the process's own time, kernel "
        "included. In the last three nobody contends, and the fastest slice counts.",
    ]
    if "preloom" in chosen:
        hooks = system.exported()
        theirs = [figure for figure, (*_, call) in FIGURES.items() if call not in hooks]
        if theirs:
            # Both columns then run the same code: the figure says nothing about preloom's.
            text += ["", f"Not served by the measured library but by libc itself, in both: {', '.join(theirs)}."]
            print(f"  libc's own in both columns: {', '.join(theirs)}")
    results.write_csv(args.out / "micro.csv", rows)
    results.write_markdown(args.out / "micro.md", "Micro-benchmarks", text, failures)
    names = [figure for figure in FIGURES if any((figure, name) in middle["cpu_ns"] for name in chosen)]
    series = [(name, [middle["cpu_ns"].get((figure, name), 0) for figure in names]) for name in chosen]
    results.bars(args.out / "micro.svg", "Nanoseconds of CPU time an operation, logarithmic", "ns", names, series)
