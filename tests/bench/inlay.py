"""Inlay's side of the comparison: its build, and one run of llm-bench for each measurement."""
import pathlib
import shlex
import subprocess

import cold
from child import run_child

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build(folder):
    """An optimised build of the programs; a folder that exists keeps its options."""
    for command in (["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja"],
                    ["ninja", "-C", folder, "llm-bench", "machine-limits", "cold_start"]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{shlex.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    if (ROOT / "samples" / "pack").exists() or (ROOT / "samples" / "llm_pack.cc").exists():
        subprocess.run(["ninja", "-C", folder, "llm-pack"], capture_output=True)  # cold rows say when it is missing


class Inlay:
    def __init__(self, folder, threads, kernels, timeout_s):
        self.program = pathlib.Path(folder) / "samples" / "llm-bench"
        self.starter = pathlib.Path(folder) / "tests" / "bench" / "cold_start"
        self.packer = pathlib.Path(folder) / "samples" / "llm-pack"
        self.threads = threads
        self.kernels = kernels
        self.timeout_s = timeout_s

    def _command(self, row, model):
        kind = {"busy": "decode"}.get(row.kind, row.kind)
        command = [self.program, "--model", model, "--threads", self.threads, "--workload", kind, "--kv-dtype", row.kv,
                   "--prompt-tokens", max(row.prompt, 1), "--tokens", row.tokens, "--streams", row.streams,
                   "--arrival-tokens", row.late or 1]
        return command + (["--kernels", self.kernels] if self.kernels else [])

    def measure(self, row, model):
        """One run: {"value": tokens a second, or seconds of the worst gap, "raw": its JSON, and Child.about()}."""
        child = run_child(self._command(row, model), self.timeout_s)
        raw = child.json_lines()[0]
        return {"value": raw["worst_gap_s" if row.kind == "arrival" else "tokens_per_s"], "raw": raw, **child.about()}

    def plan(self, row, model):
        """What it plans to take for that run, in bytes, from the header of the file alone."""
        return run_child(self._command(row, model) + ["--plan"], self.timeout_s).json_lines()[0]

    def start(self, row, model):
        """A process until its first token, as cold.start tells it."""
        options = [f"threads={self.threads}", *([f"kernels={self.kernels}"] if self.kernels else [])]
        return cold.start(self.starter, model, row.prompt, "read", self.timeout_s, options)

    def require_packer(self):
        if not self.packer.exists():
            raise RuntimeError(f"the program {self.packer.name} is not built")

    def pack(self, model, output):
        run_child([self.packer, model, output], self.timeout_s)
