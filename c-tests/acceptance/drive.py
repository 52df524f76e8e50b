"""What the acceptance scripts share: a server under the library, its threads counted, its end checked.

A script imports Failure, Server, build, options, verdict and ends with `verdict(main)`. WORKERS, PRELOOM_LIB, BUILD
and FULL come from the environment, as c-tests/run sets them; by hand none is needed, and --native leaves the library
out (and with it the checks that only make sense under it).
"""

import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LIBRARY = Path(os.environ.get("PRELOOM_LIB") or ROOT / "build" / "lib" / "libpreloom.so")
BUILD = Path(os.environ.get("BUILD") or ROOT / "build" / "c-tests" / "acceptance")
WORKERS = int(os.environ.get("WORKERS") or 2)
FULL = bool(os.environ.get("FULL"))
NATIVE = "--native" in sys.argv[1:]


class Failure(Exception):
    """Why the script's verdict is no."""


def build(source):
    """Build a program of this folder or of its parent, unless it is up to date; return where it is."""
    path = ROOT / "c-tests" / source
    output = BUILD / path.stem
    if output.exists() and output.stat().st_mtime > path.stat().st_mtime:
        return output
    links = re.findall(r"^// link: (.*)$", path.read_text(), re.MULTILINE)
    output.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-g", "-O1", "-pthread", f"-I{ROOT / 'c-tests' / 'common'}", str(path), "-o", str(output),
               *shlex.split(" ".join(links))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{source} does not build\n{done.stderr}")
    return output


class Server:
    """A server that prints "listening on PORT", run under the library. Killed at the end whatever happens.

    While it runs, a thread samples how many kernel threads it has; `most_threads` is the highest count seen.
    """

    def __init__(self, *command):
        self.command = [str(word) for word in command]
        self.most_threads = 0
        self.errors = tempfile.TemporaryFile()

    def __enter__(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PRELOOM_", "LD_PRELOAD"))}
        if not NATIVE:
            if not LIBRARY.exists():
                raise Failure(f"{LIBRARY} is missing")
            env |= {"LD_PRELOAD": str(LIBRARY), "PRELOOM_WORKERS": str(WORKERS), "PRELOOM_STATS": "1"}
        self.process = subprocess.Popen(self.command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)
        try:
            self.port = self.announced_port()
        except BaseException:
            self.kill()
            raise
        self.sampling = threading.Event()
        self.sampler = threading.Thread(target=self.sample)
        self.sampler.start()
        return self

    def __exit__(self, *_):
        self.sampling.set()
        self.sampler.join()
        self.kill()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def announced_port(self):
        watchdog = threading.Timer(20, self.process.kill)
        watchdog.start()
        line = self.process.stdout.readline()
        watchdog.cancel()
        found = re.fullmatch(r"listening on (\d+)\n", line)
        if not found:
            raise Failure(f"the server did not start: {line!r}\n{self.complaints()}")
        return int(found.group(1))

    def sample(self):
        while not self.sampling.wait(0.1):
            self.most_threads = max(self.most_threads, self.threads())

    def threads(self):
        """Threads of /proc/PID/status now; 0 when the server is gone."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return 0
        found = re.search(r"^Threads:\s*(\d+)$", status, re.MULTILINE)
        return int(found.group(1)) if found else 0

    def complaints(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def check_alive(self):
        if self.process.poll() is not None:
            raise Failure(f"the server ended by itself, status {self.process.returncode}\n{self.complaints()}")

    def check_threads(self, limit):
        if not NATIVE and not 0 < self.most_threads <= limit:
            raise Failure(f"{self.most_threads} threads, more than {limit}\n{self.complaints()}")

    def stop(self, seconds=20):
        """SIGTERM; the server must exit with status 0, and the library must have been at work."""
        self.check_alive()
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"the server still runs {seconds} s after SIGTERM") from None
        if status != 0:
            raise Failure(f"the server's exit status is {status}\n{self.complaints()}")
        own = [line for line in self.complaints().splitlines() if line.startswith("preloom:")]
        if not NATIVE and not any(line.startswith("preloom: stats:") for line in own):
            raise Failure(f"no stats line, was the library active?\n{self.complaints()}")
        complaints = [line for line in own if not line.startswith("preloom: stats:")]
        if complaints:
            raise Failure("the library complains\n" + "\n".join(complaints))


def output_of(*command, seconds):
    """Run a client to its end, natively; return what it wrote."""
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=seconds)
    except subprocess.TimeoutExpired as late:
        raise Failure(f"the client still ran after {seconds} s\n{(late.stdout or b'').decode()}") from None
    if done.returncode != 0:
        raise Failure(f"the client's exit status is {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def number(pattern, text):
    found = re.search(pattern, text, re.MULTILINE)
    if not found:
        raise Failure(f"no {pattern!r} in\n{text}")
    return float(found.group(1))


def verdict(main):
    """Run main(), which returns a line to print or raises Failure; exit 0 or 1."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    world = "natively" if NATIVE else f"{WORKERS} worker{'s' * (WORKERS > 1)}"
    began = time.monotonic()
    try:
        text = main()
    except Failure as failure:
        print(f"FAIL ({world}): {failure}")
        sys.exit(1)
    print(f"ok ({world}, {time.monotonic() - began:.1f} s): {text}")
