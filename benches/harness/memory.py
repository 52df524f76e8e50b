"""What an idle connection costs in memory."""

import subprocess
from pathlib import Path
from statistics import median

from . import load, results, system

# epoll-lt has no stack at all: it shows what the sockets themselves cost in the kernel.
PEERS = ["threads", "preloom", "preloom-64K", "epoll-lt"]


def own(pid):
    """RSS and page tables of a process in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return sum(int(fields[name].split()[0]) for name in ("VmRSS", "VmPTE"))


def kernel():
    """Kernel stacks and unreclaimable objects of the whole system in KiB (page tables count as the process's own)."""
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return sum(int(fields[name].split()[0]) for name in ("KernelStack", "SUnreclaim"))


def run(args):
    print("memory")
    chosen = system.contenders(args, PEERS)
    count = args.connections[-1] if args.connections else 10_000
    rows, failures = [], []
    for index in range(min(args.rounds, 3)):
        for contender in chosen:
            try:
                with system.Server(contender) as server:
                    before, kernel_before = own(server.process.pid), kernel()
                    arguments = ["--idle", "--seconds", "0.2", "--connections", str(count)]
                    report = load.drive(server, arguments, timeout=120)
            except (system.BenchError, subprocess.TimeoutExpired) as error:
                failures.append(f"round {index + 1}: {error}")
                print(f"  {failures[-1]}")
                continue
            after = report["server_rss_kib"] + report["server_page_tables_kib"]
            rows.append(
                {
                    "contender": contender,
                    "round": index,
                    "connections": count,
                    "own_kib": round((after - before) / count, 2),
                    "kernel_kib": round((report["system_kernel_kib"] - kernel_before) / count, 2),
                    "threads": report["server_threads"],
                }
            )
            row = rows[-1]
            print(f"  round {index + 1} {contender:12} {row['own_kib']:6.2f} KiB, kernel {row['kernel_kib']:6.2f} KiB")
    publish(args, chosen, count, rows, failures)
    return failures


def thread_or_coroutine(rows):
    """Adds to each row the total, and what is left of it without the sockets: what epoll-lt took in that round."""
    for row in rows:
        row["total_kib"] = round(row["own_kib"] + row["kernel_kib"], 2)
    sockets = {row["round"]: row["total_kib"] for row in rows if row["contender"] == "epoll-lt"}
    for row in rows:
        base = sockets.get(row["round"])
        row["without_sockets_kib"] = None if base is None else round(row["total_kib"] - base, 2)


def publish(args, chosen, count, rows, failures):
    thread_or_coroutine(rows)
    columns = {
        "own_kib": "RSS + page tables, KiB",
        "kernel_kib": "kernel memory, KiB",
        "total_kib": "both, KiB",
        "without_sockets_kib": "without the sockets, KiB",
    }
    lines, values = [], []
    for name in chosen:
        mine = [row for row in rows if row["contender"] == name]
        middle = {
            key: median(row[key] for row in mine)
            for key in columns
            if mine and all(row[key] is not None for row in mine)
        }
        values.append(middle.get("own_kib", 0))
        share = None
        if name != "epoll-lt" and "without_sockets_kib" in middle:
            share = results.ratio(rows, name, "without_sockets_kib", results.of("threads", "without_sockets_kib"))
        threads = median(row["threads"] for row in mine) if mine else None
        cells = [*(results.number(middle.get(key), 2) for key in columns), results.number(share, 2)]
        lines.append([name, *cells, results.number(threads)])
    text = [
        f"{count:,} connections, each after one 64-byte request, divided by their number.",
        "",
        *results.table(["", *columns.values(), "× threads", "Threads"], lines),
        "",
        "Kernel memory is the growth of KernelStack and SUnreclaim of the whole system: both ends of the sockets are "
        "in it, and so is what other programs did meanwhile. “Without the sockets” takes off what `epoll-lt`, which has "
        "no stacks, took in the same round; “× threads” compares that.",
    ]
    results.write_csv(args.out / "memory.csv", rows)
    results.write_markdown(args.out / "memory.md", "Memory of an idle connection", text, failures)
    title = f"KiB an idle connection at {count:,} (RSS + page tables)"
    results.bars(args.out / "memory.svg", title, "KiB", ["idle connection"], [(n, [v]) for n, v in zip(chosen, values)])
