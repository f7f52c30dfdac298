"""Feed changed inputs to the package until the time is up, and save what fails, as small as it gets.

``python -m fuzzing.run --minutes 10`` draws a new seed each time and says which. Inputs go through a process of
their own, so that a crash, more than 10 seconds of processor time or more than 2 GB of memory is a failure like any
other. The clock on the wall counts only for what hangs: on a busy machine it says little about the input.
"""

import argparse
import faulthandler
import hashlib
import os
import pickle
import random
import resource
import secrets
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

CORPUS = Path(__file__).resolve().parents[2] / "tests" / "fuzz" / "corpus"
KERNELS = CORPUS.parents[2] / "build" / "fuzz-kernels"
#: Seconds of the processor and bytes that one input may take, and runs that making it smaller may take.
SECONDS, MEMORY, SMALLER = 10, 2 << 30, 300
#: Seconds by the clock after which a process hangs.
HANGS = 12 * SECONDS


def signature(name: str, data: bytes) -> str | None:
    """Return what went wrong with an input, in one line, or None."""
    from fuzzing.targets import judge

    signal.signal(signal.SIGPROF, lambda *_: (_ for _ in ()).throw(TimeoutError(f"more than {SECONDS} s")))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        judge(name, data)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
        frames = [one for one in traceback.extract_tb(error.__traceback__) if "consilience/" in one.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "outside"
        first = str(error).split(" ", 1)[0] if isinstance(error, AssertionError) else ""
        return f"{type(error).__name__} {first} at {place}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


class Worker:
    """A process that judges inputs one after the other; a new one takes over where it dies."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        here, there = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(here[1])
            os.close(there[0])
            self._serve(os.fdopen(here[0], "rb"), os.fdopen(there[1], "wb"))
        os.close(here[0])
        os.close(there[1])
        self.to, self.back = os.fdopen(here[1], "wb"), os.fdopen(there[0], "rb")

    def _serve(self, source: object, sink: object) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, used + MEMORY))
        faulthandler.disable()
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  for the life of the process
        while True:
            head = source.read(8)
            if len(head) < 8:
                os._exit(0)
            name, data = pickle.loads(source.read(struct.unpack("<Q", head)[0]))
            answer = pickle.dumps(signature(name, data))
            sink.write(struct.pack("<Q", len(answer)) + answer)
            sink.flush()

    def ask(self, name: str, data: bytes) -> str | None:
        """Return what went wrong with an input, or None."""
        message = pickle.dumps((name, data))
        watch = signal.signal(signal.SIGALRM, lambda *_: os.kill(self.pid, signal.SIGKILL))
        signal.alarm(HANGS)  # for what no exception can stop
        try:
            self.to.write(struct.pack("<Q", len(message)) + message)
            self.to.flush()
            head = self.back.read(8)
            answer = self.back.read(struct.unpack("<Q", head)[0]) if len(head) == 8 else b""
        except BrokenPipeError:
            answer = b""
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, watch)
        if answer:
            return pickle.loads(answer)
        status = os.waitpid(self.pid, 0)[1]
        self.to.close()
        self.back.close()
        self.start()
        return f"the process died of signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "the process ended"

    def stop(self) -> None:
        self.to.close()
        self.back.close()
        os.waitpid(self.pid, 0)


def kind_of(failure: str) -> str:
    """Return what failures of one cause have in common."""
    return failure.split(": ", 1)[0]


def smallest(worker: Worker, name: str, data: bytes, failure: str) -> bytes:
    """Return a smaller input that fails in the same way."""
    runs, step = 0, max(len(data) // 2, 1)
    while step and runs < SMALLER and "10 s" not in failure:
        place = 0
        while place < len(data) and runs < SMALLER:
            shorter = data[:place] + data[place + step :]
            runs += 1
            found = worker.ask(name, shorter)
            if found is not None and kind_of(found) == kind_of(failure):
                data = shorter
            else:
                place += step
        step //= 2
    return data


def saved(corpus: Path, name: str, data: bytes) -> Path:
    """Return the file that an input was saved in."""
    path = corpus / name / hashlib.sha256(data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def main() -> int:
    """Run until the time is up, and return how many kinds of failures there were."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--inputs", type=int, default=None, help="stop after this many inputs")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--target", action="append", default=None)
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    chosen = parser.parse_args()
    from fuzzing import targets

    seed = secrets.randbits(32) if chosen.seed is None else chosen.seed
    rng = random.Random(seed)
    names = chosen.target or list(targets.TARGETS)
    # In memory where that is possible: thousands of small files are written and read.
    place = next((path for path in ("/dev/shm",) if os.access(path, os.W_OK | os.X_OK)), None)
    outside = os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="consilience-fuzz-", dir=place) as scratch:
        os.environ["TMPDIR"] = tempfile.tempdir = scratch
        seeds = {name: targets.TARGETS[name].seeds() for name in names}
        # For the time there is, n inputs per target with the least sum of 1 / n over all seeds: n goes with this.
        weights = [len(seeds[name]) / targets.TARGETS[name].milliseconds ** 0.5 for name in names]
        print(f"seed {seed}, {len(names)} targets, {chosen.minutes:g} minutes", flush=True)
        worker, done, failures = Worker(), Counter[str](), dict[str, Path]()
        end, last = time.monotonic() + 60.0 * chosen.minutes, time.monotonic()
        while time.monotonic() < end and (chosen.inputs is None or done.total() < chosen.inputs):
            (name,) = rng.choices(names, weights)
            data = targets.TARGETS[name].change(rng.choice(seeds[name]), rng)
            done[name] += 1
            failure = worker.ask(name, data)
            if failure is not None and f"{name}: {kind_of(failure)}" not in failures:
                if name != "model":
                    data = smallest(worker, name, data, failure)
                path = failures[f"{name}: {kind_of(failure)}"] = saved(chosen.corpus, name, data)
                print(f"FAILED {name}: {failure}\n  saved as {path}", flush=True)
            if time.monotonic() > last + 60.0:
                last = time.monotonic()
                print(f"{done.total()} inputs, {len(failures)} kinds of failures", flush=True)
        worker.stop()
        tempfile.tempdir = None
        del os.environ["TMPDIR"]
        os.environ.update({} if outside is None else {"TMPDIR": outside})
    print(f"{done.total()} inputs, {len(failures)} kinds of failures: {dict(done)}")
    return len(failures)


if __name__ == "__main__":
    # Kernels that check their indices: one that reads or writes elsewhere is a failure, also where nothing crashes.
    os.environ.setdefault("NUMBA_BOUNDSCHECK", "1")
    os.environ.setdefault("NUMBA_CACHE_DIR", str(KERNELS))
    sys.exit(1 if main() else 0)
