"""The machine, the programs, and how a contender is started and stopped."""

import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "bench"
BUILT_LIBRARY = ROOT / "build" / "lib" / "libpreloom.so"
# What is measured is a copy: a build in the middle of a run must not change what its rounds compare.
LIBRARY = BUILD / "libpreloom.so"
RELEASE = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release"
LOADGEN = RELEASE / "loadgen"
PLOT = RELEASE / "plot"
SERVER_CPU, LOAD_CPU = 0, 1

SOURCES = {
    "echo_server": ROOT / "c-tests" / "echo_server.c",
    "epoll_lt": ROOT / "benches" / "servers" / "epoll_lt.c",
    "epoll_et": ROOT / "benches" / "servers" / "epoll_et.c",
    **{path.stem: path for path in sorted((ROOT / "benches" / "micro").glob("*.c"))},
}

PRELOAD = {"LD_PRELOAD": str(LIBRARY), "PRELOOM_WORKERS": "1"}

# Name: (program, what is added to the environment). The first is what ratios are taken against.
CONTENDERS = {
    "threads": ("echo_server", {}),
    "preloom": ("echo_server", PRELOAD),
    "preloom-64K": ("echo_server", {**PRELOAD, "PRELOOM_STACK": "64K"}),
    "epoll-lt": ("epoll_lt", {}),
    "epoll-et": ("epoll_et", {}),
}


class BenchError(Exception):
    """Something without which no figure can be had."""


def contenders(args, default):
    """The contenders of a bench: `default`, or those of them that the command line names."""
    chosen = [name for name in default if args.contenders is None or name in args.contenders]
    for name in chosen:
        if "LD_PRELOAD" in CONTENDERS[name][1] and not LIBRARY.exists():
            raise BenchError(f"contender {name}: {BUILT_LIBRARY} is missing; build it with make")
    return chosen


def prepare(args):
    """Builds what is measured and what measures."""
    if len(os.sched_getaffinity(0)) < 2:
        raise BenchError("two CPUs are needed: one for the server, one for the load")
    BUILD.mkdir(parents=True, exist_ok=True)
    for name, source in SOURCES.items():
        if not source.exists():
            raise BenchError(f"{source} is missing")
        command = ["cc", "-std=gnu17", "-O2", "-Wall", "-pthread", "-o", str(BUILD / name), str(source)]
        if subprocess.run(command).returncode != 0:
            raise BenchError(f"cannot build {source}")
    command = ["cargo", "build", "--quiet", "--release", "-p", "loadgen"]
    if subprocess.run(command, cwd=ROOT).returncode != 0:
        raise BenchError("cannot build the load generator")
    args.out.mkdir(parents=True, exist_ok=True)
    LIBRARY.unlink(missing_ok=True)
    if BUILT_LIBRARY.exists():
        shutil.copy2(BUILT_LIBRARY, LIBRARY)


def exported():
    """The names that the library puts in the place of libc's."""
    lines = subprocess.run(
        ["nm", "--dynamic", "--defined-only", str(LIBRARY)], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def enter_network_namespace():
    """Starts over in a network namespace of our own, where sysctls can be set without a trace on the machine.

    A system whose default congestion control paces its packets (bbr) adds a fifth to the cost of a request on
    loopback, for every contender; there, ports in TIME_WAIT from earlier runs would also be in the way.
    """
    if os.environ.get("PRELOOM_BENCH_NETNS") == "1":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            up = struct.pack("16sh14x", b"lo", 0x1 | 0x40)  # IFF_UP | IFF_RUNNING
            fcntl.ioctl(control, 0x8914, up)  # SIOCSIFFLAGS
        # Of the usual algorithms only reno may be chosen in every namespace; without loss they are all alike.
        for name, value in (("tcp_congestion_control", "reno"), ("ip_local_port_range", "1024 65535")):
            try:
                Path(f"/proc/sys/net/ipv4/{name}").write_text(value)
            except OSError as error:
                print(f"net.ipv4.{name} stays as it is: {error}", file=sys.stderr)
        return
    unshare = shutil.which("unshare")
    flags = ["-n"] if os.geteuid() == 0 else ["-rn"]
    if unshare is None or subprocess.run([unshare, *flags, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("no network namespace can be made here: using the machine's network", file=sys.stderr)
        return
    os.environ["PRELOOM_BENCH_NETNS"] = "1"
    os.execv(unshare, [unshare, *flags, sys.executable, *sys.argv])


def description():
    """What a reader must know about the machine to judge the figures."""
    cpu = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        "unknown",
    )
    kernel = os.uname()
    libc = os.confstr("CS_GNU_LIBC_VERSION")
    congestion = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    return [
        f"* {time.strftime('%Y-%m-%d')}, Linux {kernel.release} {kernel.machine}, {libc}",
        f"* {cpu}, {os.cpu_count()} CPUs; server pinned to CPU {SERVER_CPU}, load to CPU {LOAD_CPU}",
        f"* loopback, TCP congestion control {congestion}",
        f"* `{' '.join(['benches/run', *sys.argv[1:]])}`",
    ]


def pin(cpu):
    return lambda: os.sched_setaffinity(0, {cpu})


def wait_until_quiet(patience):
    """Waits until other programs leave the two CPUs alone, or `patience` seconds have passed."""

    def ticks():
        lines = Path("/proc/stat").read_text().splitlines()
        used = [line.split() for line in lines if line.startswith((f"cpu{SERVER_CPU} ", f"cpu{LOAD_CPU} "))]
        return sum(int(line[4]) for line in used), sum(int(field) for line in used for field in line[1:9])

    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        idle, total = ticks()
        time.sleep(0.3)
        idle_after, total_after = ticks()
        if idle_after - idle > 0.9 * (total_after - total):
            return


class Server:
    """A running contender; a context manager, so that none is left behind."""

    def __init__(self, contender):
        program, extra = CONTENDERS[contender]
        self.name = contender
        self.process = subprocess.Popen(
            [str(BUILD / program), "0"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **extra},
            preexec_fn=pin(SERVER_CPU),
        )
        line = self.process.stdout.readline().split()
        if line[:2] != ["listening", "on"]:
            self.process.kill()
            self.process.wait()
            raise BenchError(f"{contender} did not start")
        self.port = int(line[2])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Ends the server; returns what was wrong with how it ended, or None."""
        if self.process.returncode is not None:
            return None
        early = self.process.poll()
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return f"{self.name}: the server did not end on SIGTERM"
        if early is not None or status != 0:
            return f"{self.name}: the server ended with status {status}" + (" early" if early is not None else "")
        return None


def program(name, arguments, extra, timeout):
    """Runs a program of the micro-benchmarks on the server's CPU and returns what it prints."""
    done = subprocess.run(
        [str(BUILD / name), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **extra},
        preexec_fn=pin(SERVER_CPU),
        timeout=timeout,
    )
    if done.returncode != 0:
        raise BenchError(f"{name} ended with status {done.returncode}: {done.stderr.strip()}")
    if done.stderr:
        # The programs say nothing there; the loader or the library does when the program runs natively after all.
        raise BenchError(f"{name}: {done.stderr.strip()}")
    return done.stdout
