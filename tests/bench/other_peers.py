"""Other engines from PyPI, as columns of the table: each in a venv of its own, driven by a script that runs there."""
import pathlib
import sys
import subprocess

from child import run_child
from models import GGUF_PACKAGE, cache_folder, python_with

# name: (packages of its venv, script)
PEERS = {"ctranslate2": (("ctranslate2==4.8.5", GGUF_PACKAGE), "peer_ctranslate2.py"),
         "openvino-genai": (("openvino-genai==2026.4.1.0", "numpy"), "peer_openvino.py")}
NAMES = tuple(PEERS)


class OtherPeer:
    def __init__(self, name, python, script, threads, timeout_s):
        self.name = name
        self._command = [python, script]
        self._threads = threads
        self._timeout_s = timeout_s

    def measure(self, row, model):
        """Tokens a second, or None (with the reason on stderr) where it cannot run the row."""
        if row.kind not in ("prefill", "decode", "streams") or row.kv != "f16":
            return None
        command = [*self._command, model, self._threads, row.kind, row.prompt, row.tokens, row.streams, cache_folder()]
        try:
            return run_child(command, self._timeout_s).json_lines()[-1]["tokens_per_s"]
        except (RuntimeError, IndexError, subprocess.SubprocessError) as error:
            print(f"{row.name}: {self.name}: {error}", file=sys.stderr)
            return None


def open_all(threads, timeout_s):
    """Those that install here; why the others do not goes to stderr."""
    opened = []
    for name, (packages, script) in PEERS.items():
        try:
            for package in packages:
                python = python_with(package, f"peer-{name}")
            opened.append(OtherPeer(name, python, pathlib.Path(__file__).with_name(script), threads, timeout_s))
        except (OSError, subprocess.SubprocessError) as error:
            print(f"compare.py: {name} does not install here: {error}", file=sys.stderr)
    return opened
