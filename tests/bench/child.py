"""Child processes: what they print, when it begins, how much memory they held; and a neighbour that takes a core."""
import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

# Ends with its parent (PR_SET_PDEATHSIG, SIGKILL), so that nothing that stops the comparison leaves it running.
NEIGHBOUR = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
os.sched_setaffinity(0, {int(sys.argv[1])})
print("running", flush=True)
while True:
    pass
"""


@dataclasses.dataclass
class Child:
    output: str
    first_output_s: float      # from before its start to its first byte on stdout
    peak_resident_bytes: int   # file pages that it maps are counted
    others_cores: float        # that all other processes kept busy meanwhile, on average

    def about(self):
        return {"peak_resident_bytes": self.peak_resident_bytes, "others_cores": self.others_cores}

    def json_lines(self):
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]


def _busy_cpu_s():
    """Seconds that all cores together have been busy since boot."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, interrupts, soft_interrupts, *_ = map(int, file.readline().split()[1:])
    return (user + nice + system + interrupts + soft_interrupts) / os.sysconf("SC_CLK_TCK")


def run_child(command, timeout_s, **options):
    """Runs it to its end. RuntimeError: it failed; TimeoutExpired: it was stopped. Keywords: of subprocess.Popen."""
    command = [str(part) for part in command]
    with tempfile.TemporaryFile() as errors:
        begin, busy_begin_s = time.perf_counter(), _busy_cpu_s()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, **options)
        stop = threading.Timer(timeout_s, process.kill)
        stop.start()
        try:
            output = os.read(process.stdout.fileno(), 1 << 16)
            first_output_s = time.perf_counter() - begin
            output += process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            others_s = _busy_cpu_s() - busy_begin_s - usage.ru_utime - usage.ru_stime
            seconds = time.perf_counter() - begin
        finally:
            stop.cancel()
            process.kill()  # nothing where it has ended
            process.wait()
            process.stdout.close()
        if process.returncode and seconds >= timeout_s:
            raise subprocess.TimeoutExpired(command, timeout_s)
        if process.returncode:
            errors.seek(0)
            text = errors.read().decode("utf-8", "replace").strip()[-600:]
            raise RuntimeError(f"{command[0]} failed ({process.returncode}): {text}")
    return Child(output.decode("utf-8", "replace"), first_output_s, usage.ru_maxrss * 1024,
                 max(0.0, others_s / seconds))


@contextlib.contextmanager
def busy_neighbour(core):
    """A process of its own that computes on `core` without a pause, until the block ends."""
    with subprocess.Popen([sys.executable, "-c", NEIGHBOUR, str(core)], stdout=subprocess.PIPE) as process:
        try:
            if process.stdout.readline() != b"running\n":
                raise RuntimeError(f"the busy neighbour cannot run on core {core}")
            yield process.pid
        finally:
            process.kill()
