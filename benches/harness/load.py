"""The benches that put load on an echo server: echo, churn, latency."""

import json
import subprocess
from statistics import median

from . import results, system

PEERS = ["threads", "preloom", "epoll-lt", "epoll-et"]
RAW = ("epoll-lt", "epoll-et")
# Kernel threads of a preloaded server with one worker: main, the worker, the monitor, and a few spare carriers.
MOST_THREADS = 8
# A round is disturbed when other programs had a CPU for more than this share of a contender's window. The server's
# share is counted in ticks, three of which are 1% of 3 s.
DISTURBED = 0.03


def drive(server, arguments, timeout):
    """Runs the load generator against a server and returns its report."""
    command = [str(system.LOADGEN), "--connect", f"127.0.0.1:{server.port}", "--server-pid", str(server.process.pid)]
    done = subprocess.run(
        [*command, "--json", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=system.pin(system.LOAD_CPU),
        timeout=timeout,
    )
    try:
        report = json.loads(done.stdout)
    except ValueError:
        raise system.BenchError(f"{server.name}: {done.stderr.strip()}") from None
    if report["errors"]:
        kinds = ", ".join(f"{count} {kind}" for kind, count in report["error_kinds"].items())
        raise system.BenchError(f"{server.name}: {report['errors']} errors ({kinds})")
    if "LD_PRELOAD" in system.CONTENDERS[server.name][1] and report["server_threads"] > MOST_THREADS:
        # A library that fell back to running the program natively must not pass for preloom.
        raise system.BenchError(f"{server.name}: {report['server_threads']} kernel threads: it ran natively")
    return report


def rounds(args, cases):
    """Runs every case with every contender in each round.

    `cases` are (label, arguments of the load generator). Returns rows, distributions and failures.
    """
    chosen = system.contenders(args, PEERS)
    rows, distributions, failures = [], {}, []
    for label, arguments in cases:
        for index in range(args.rounds):
            # Another order in each round: whoever comes first finds the machine in another state.
            order = [chosen[(place + index) % len(chosen)] for place in range(len(chosen))]
            reports, failed = calm_round(args, f"{label}, round {index + 1}", arguments, order)
            failures += failed
            for contender, report in reports.items():
                distributions.setdefault((label, contender), []).append(report["cdf"])
                rows.append({"case": label, "round": index, "contender": contender, **columns(report)})
    return chosen, rows, distributions, failures


def disturbance(report):
    """Share of the window in which other programs had a CPU that the server or the load wanted."""
    return max(report["load_delay"], report["server_delay"] or 0)


def calm_round(args, label, arguments, order):
    """One round: repeated while other programs disturb it, of which the least disturbed attempt counts.

    How much a round was disturbed says nothing about who was fast in it, so the choice favours nobody. A failure is
    never repeated away.
    """
    attempts = []
    while len(attempts) <= args.retries:
        system.wait_until_quiet(patience=20)
        reports, failures = one_round(args, label, arguments, order)
        disturbed = max((disturbance(report) for report in reports.values()), default=0)
        attempts.append((disturbed, reports))
        if failures:
            return reports, failures
        if disturbed <= DISTURBED:
            break
        print(f"  {label}: other programs had a CPU for {disturbed:.0%} of the time", flush=True)
    return min(attempts, key=lambda attempt: attempt[0])[1], []


def one_round(args, label, arguments, order):
    """Runs each contender once; returns their reports and what failed."""
    reports, failures = {}, []
    for contender in order:
        try:
            with system.Server(contender) as server:
                seconds = ["--seconds", str(args.seconds)]
                report = drive(server, [*seconds, "--cdf", *arguments], timeout=args.seconds + 120)
                wrong = server.stop()
                if wrong:
                    raise system.BenchError(wrong)
        except (system.BenchError, subprocess.TimeoutExpired) as error:
            failures.append(f"{label}: {error}")
            print(f"  {failures[-1]}")
            continue
        reports[contender] = report
        print(
            f"  {label} {contender:8} {report['requests_per_second']:9,.0f}/s "
            f"{report['server_cpu_us_per_request']:7.2f} µs CPU  p99 {report['p99_us']:,.0f} µs",
            flush=True,
        )
    return reports, failures


def columns(report):
    return {
        "requests_per_second": round(report["requests_per_second"], 1),
        "cpu_us": round(report["server_cpu_us_per_request"], 3),
        "p50_us": report["p50_us"],
        "p99_us": report["p99_us"],
        "p999_us": report["p999_us"],
        "max_us": report["max_us"],
        "threads": report["server_threads"],
        "memory_kib": report["server_rss_kib"] + report["server_page_tables_kib"],
        "server_cpu": round(report["server_cpu_us"] / report["seconds"] / 1e6, 3),
        "load_cpu": round(report["load_cpu"], 3),
        "disturbed": round(disturbance(report), 3),
    }


def best_raw(column, choose):
    """Reference for a ratio: the better of the raw epoll servers in the same round."""
    return lambda peers: choose((row[column] for row in peers if row["contender"] in RAW), default=None)


HEADER = [
    "",
    "requests/s",
    "× threads",
    "× best epoll",
    "µs CPU/request",
    "× threads",
    "× best epoll",
    "p50 µs",
    "p99 µs",
    "p99.9 µs",
    "Threads",
    "RSS + page tables, MiB",
    "server CPU",
    "load CPU",
    "disturbed",
]


def section(args, label, rows, chosen):
    """The table of one case."""
    rows = [row for row in rows if row["case"] == label]
    lines = []
    for name in chosen:
        mine = [row for row in rows if row["contender"] == name]
        if not mine:
            lines.append([name, "failed"] + ["–"] * (len(HEADER) - 2))
            continue
        middle = {key: median(row[key] for row in mine) for key in mine[0] if key not in ("case", "round", "contender")}
        lines.append(
            [
                name,
                results.number(middle["requests_per_second"]),
                results.number(
                    results.ratio(rows, name, "requests_per_second", results.of("threads", "requests_per_second")), 2
                ),
                results.number(
                    results.ratio(rows, name, "requests_per_second", best_raw("requests_per_second", max)), 2
                ),
                results.number(middle["cpu_us"], 2),
                results.number(results.ratio(rows, name, "cpu_us", results.of("threads", "cpu_us")), 2),
                results.number(results.ratio(rows, name, "cpu_us", best_raw("cpu_us", min)), 2),
                results.number(middle["p50_us"]),
                results.number(middle["p99_us"]),
                results.number(middle["p999_us"]),
                results.number(middle["threads"]),
                results.number(middle["memory_kib"] / 1024, 1),
                results.number(middle["server_cpu"] * 100) + "%",
                results.number(middle["load_cpu"] * 100) + "%",
                results.number(middle["disturbed"] * 100) + "%",
            ]
        )
    noisy = len({row["round"] for row in rows if row["disturbed"] > DISTURBED})
    warning = (
        [f"**{noisy} of {args.rounds} rounds were disturbed** by other programs: only CPU time a request says much.", ""]
        if noisy
        else []
    )
    return [f"## {label}", "", *results.table(HEADER, lines), "", *warning]


def publish(args, name, title, intro, cases, outcome):
    """Writes the Markdown and CSV files of a bench."""
    chosen, rows, _, failures = outcome
    lines = [intro, ""]
    for label, _ in cases:
        lines += section(args, label, rows, chosen)
    lines.append(
        f"Medians of {args.rounds} interleaved rounds of {args.seconds:g} s; ratios are taken within a round. “server "
        "CPU” and “load CPU” are the shares of their CPUs that the two used: where the load is near 100% and the "
        "server is not, requests/s is bounded by the load and CPU time a request is what compares. “Disturbed” is the "
        "share of the window in which other programs had the CPU of the server or of the load; a round above "
        f"{DISTURBED:.0%} is repeated up to {args.retries} times, and the least disturbed attempt counts."
    )
    results.write_csv(args.out / f"{name}.csv", rows)
    results.write_markdown(args.out / f"{name}.md", title, lines, failures)


def echo(args):
    """64-byte ping-pong on open connections, closed loop."""
    print("echo")
    numbers = args.connections or [50, 1000, 8000]
    cases = [(f"{n:,} connections", ["--connections", str(n), "--warmup", "0.5"]) for n in numbers]
    outcome = chosen, rows, _, failures = rounds(args, cases)
    intro = (
        "64-byte ping-pong on open connections. `threads` and `preloom` are the same binary, `c-tests/echo_server.c`."
    )
    publish(args, "echo", "Echo", intro, cases, outcome)
    for column, y, file in (
        ("requests_per_second", "requests/s", "echo"),
        ("cpu_us", "µs server CPU a request", "echo_cpu"),
    ):
        middle = results.medians(rows, ("case", "contender"), lambda row, column=column: row[column])
        series = []
        for name in chosen:
            points = [(n, middle[label, name]) for n, (label, _) in zip(numbers, cases) if (label, name) in middle]
            series.append((name, points))
        results.plot(
            args.out / f"{file}.svg", f"Echo, 64 bytes: {y}", "connections", y, series, log_x=True, marks=numbers
        )
    return failures


def churn(args):
    """Connect, one request, close."""
    print("churn")
    numbers = args.connections or [50, 500]
    cases = [(f"{n:,} concurrent", ["--churn", "--connections", str(n), "--warmup", "0.5"]) for n in numbers]
    outcome = rounds(args, cases)
    intro = "Connect, one 64-byte request, close, and again. A request here is a whole connection."
    publish(args, "churn", "Connection churn", intro, cases, outcome)
    return outcome[3]


def latency(args):
    """Open loop at fixed rates."""
    print("latency")
    rates = [10_000, 20_000, 40_000]
    cases = [
        (f"{rate:,} requests/s", ["--rate", str(rate), "--connections", "1000", "--warmup", "0.5"]) for rate in rates
    ]
    outcome = chosen, _, distributions, failures = rounds(args, cases)
    intro = (
        "Fixed offered load over 1,000 connections (open loop); latency counts from the moment a request was due, "
        "whether or not it could be sent then."
    )
    publish(args, "latency", "Latency under a fixed load", intro, cases, outcome)
    for rate, (label, _) in zip(rates, cases):
        series = [(name, tail(distributions.get((label, name), []))) for name in chosen]
        path = args.out / f"latency_{rate}.svg"
        x = "slowest share of requests, 1 in"
        results.plot(path, f"Latency at {label}, 1,000 connections", x, "µs", series, log_x=True, log_y=True)
    return failures


def tail(distributions):
    """The round with the median p99, as points (1 in how many requests is slower, latency)."""

    def p99(points):
        return next((value for quantile, value in points if quantile >= 0.99), 0)

    if not distributions:
        return []
    middle = sorted(distributions, key=p99)[len(distributions) // 2]
    return [(1 / (1 - quantile), value) for quantile, value in middle if quantile < 1 and value > 0]
