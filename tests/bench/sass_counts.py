#!/usr/bin/env python3
"""Counts what a CUDA kernel's innermost loops issue, from its machine code: a GPU is not needed.

Usage: tests/bench/sass_counts.py FILE KERNEL [--target sm_90a] [--all]
FILE: a .cu, compiled as .ci/check_cuda.py does, or a .cubin or object. KERNEL: a regular expression, searched in names such as
linear_bf16_kernel<16>. For each kernel of that target: registers, shared memory of its own (not what a launch adds), instructions;
then a line for each loop that has none inside. --all: for every loop, what loops within it have included."""
import argparse
import collections
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# The first that matches the opcode without its suffixes. "uniform": one for the whole warp, on a pipe of its own, but it takes
# an issue slot as all do.
KINDS = [
    ("mma", r"[HIQOD]G?MMA$"),
    ("ldmatrix", r"LDSM$|MOVM$"),
    ("cp.async", r"LDGSTS$|UBLKCP$|UTMALDG$"),
    ("lds", r"LDS$"),
    ("sts", r"STS$"),
    ("ldg", r"LDG$|LD$|LDL$"),
    ("stg", r"STG$|ST$|STL$|RED\w*$|ATOM\w*$"),
    ("const", r"U?LDCU?$"),
    ("shuffle", r"SHFL$|VOTE\w*$|MATCH$|REDUX$"),
    ("barrier", r"BAR$|\w*DEPBAR$|WARPSYNC$|MEMBAR$|SYNCS$|ERRBAR$"),
    ("nop", r"NOP$"),
    ("exit", r"EXIT$"),
    ("branch", r"BRA$|BRX$|BSSY$|BSYNC$|BREAK$|CALL$|RET$|NANOSLEEP$|YIELD$|WARPGROUP$"),
    ("f32", r"F(FMA|MUL|ADD|MNMX|SEL|SETP|CHK|SET)\w*$|MUFU$"),
    ("f16", r"H(FMA|MUL|ADD|MNMX|SETP|SET)\w*$"),
    ("f64", r"D(FMA|MUL|ADD|SETP|MNMX)$"),
    ("convert", r"(F2F|I2F|F2I|I2I|F2FP|I2FP|F2IP|FRND)\w*$"),
    ("uniform", r"U\w+$|R2UR$|S2UR$"),
    ("int", r""),
]
INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)(\S*)([^;]*);")


def check_cuda():
    spec = importlib.util.spec_from_file_location("check_cuda", ROOT / ".ci/check_cuda.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_cuobjdump(nvcc):
    """Of the PATH or the toolkit's; it calls nvdisasm, which it finds in the PATH or beside itself."""
    found = shutil.which("cuobjdump") or shutil.which(str(pathlib.Path(nvcc).resolve().parent / "cuobjdump"))
    if found is None:
        sys.exit("sass_counts: cuobjdump is not here; tests/bench/README.md says where to get it")
    os.environ["PATH"] = str(pathlib.Path(found).parent) + os.pathsep + os.environ["PATH"]
    return found


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def compile_cubin(nvcc, flags, source, target, folder):
    cubin = pathlib.Path(folder) / "kernel.cubin"
    flags = [f for f in flags if f not in ("-Xptxas", "-v")]
    done = subprocess.run([nvcc, *flags, f"-arch={target}", "-cubin", str(source), "-o", str(cubin)], cwd=ROOT,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return cubin


def kind_of(opcode):
    return next(kind for kind, pattern in KINDS if re.match(pattern, opcode))


def read_functions(sass):
    """Mangled name -> [(address, kind, where a branch goes or None)]."""
    functions, code = {}, []
    for line in sass.splitlines():
        if found := re.search(r"Function\s*:\s*(\S+)", line):
            code = functions.setdefault(found.group(1), [])
        elif found := INSTRUCTION.match(line):
            address, condition, opcode, _, operands = found.groups()
            if condition is not None and condition.strip() == "@!PT":
                opcode = "NOP"  # never done: those that stand before a cp.async of less than its size
            goes = re.search(r"\b0x([0-9a-f]+)\s*$", operands.strip()) if opcode == "BRA" else None
            code.append((int(address, 16), kind_of(opcode), int(goes.group(1), 16) if goes else None))
    return functions


def find_loops(code):
    """[(first address, last address)]: from each target of backward branches to the last of these. Those behind the last EXIT
    come back from what a warp does lane by lane where it has diverged."""
    ends = {}
    end = max((address for address, kind, _ in code if kind == "exit"), default=0)
    for address, _, goes in code:
        if goes is not None and goes < address < end:
            ends[goes] = max(ends.get(goes, 0), address)
    return sorted(ends.items())


def is_innermost(loop, loops):
    return not any(other != loop and loop[0] <= other[0] and other[1] <= loop[1] for other in loops)


def read_resources(text):
    """Mangled name -> (registers, stack bytes, static shared bytes)."""
    pattern = r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)"
    return {name: tuple(map(int, numbers)) for name, *numbers in re.findall(pattern, text)}


def describe(code):
    counts = collections.Counter(kind for _, kind, _ in code)
    return f"{len(code):5}  " + " ".join(f"{kind} {counts[kind]}" for kind, _ in KINDS if counts[kind] > 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("kernel")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    check = check_cuda()
    nvcc = check.find_nvcc()
    if nvcc is None:
        sys.exit("sass_counts: nvcc is not here")
    cuobjdump = find_cuobjdump(nvcc)
    with tempfile.TemporaryDirectory() as folder:
        binary = options.file.resolve()
        if binary.suffix == ".cu":
            binary = compile_cubin(nvcc, check.FLAGS, binary, options.target, folder)
        chosen = [] if binary.suffix == ".cubin" else ["-arch", options.target]
        functions = read_functions(output_of(cuobjdump, *chosen, "-sass", str(binary)))
        resources = read_resources(output_of(cuobjdump, *chosen, "-res-usage", str(binary)))
    found = [(check.kernel_name(mangled), mangled) for mangled in functions]
    found = sorted(pair for pair in found if re.search(options.kernel, pair[0]))
    for name, mangled in found:
        code = functions[mangled]
        registers, stack, shared = resources.get(mangled, (0, 0, 0))
        print(f"{name}: {registers} registers, {shared} shared, {stack} stack")
        print(f"  all           {describe(code)}")
        loops = find_loops(code)
        for loop in loops:
            if options.all or is_innermost(loop, loops):
                print(f"  {loop[0]:05x}-{loop[1]:05x}   {describe([i for i in code if loop[0] <= i[0] <= loop[1]])}")
    return 0 if found else f"sass_counts: no kernel matches {options.kernel}"


if __name__ == "__main__":
    sys.exit(main())
