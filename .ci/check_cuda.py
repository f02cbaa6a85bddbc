#!/usr/bin/env python3
"""Compiles kernels/cuda/*.cu with nvcc and reads what ptxas says: no kernel may spill registers or use local memory.

Usage: .ci/check_cuda.py [sm_80 ...]   default: all targets. Prints a line a kernel; exits 1 on spills, errors, warnings.
Without nvcc it says so and succeeds."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGETS = ["sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"]
# As kernels/cuda/CMakeLists.txt. A fused multiply-add appears only where it is written.
FLAGS = ["-std=c++20", "-O3", "--fmad=false", "--expt-relaxed-constexpr", "-Werror", "all-warnings", "-Xptxas", "-v",
         "-I.", "-Iinclude"]
# Sines of doubles reduce large angles in local memory; a few thousand angles a step.
MAY_USE_STACK = {"rope_table_kernel"}


def find_nvcc():
    for name in (os.environ.get("INLAY_NVCC"), shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc"):
        if name and pathlib.Path(name).exists():
            return name
    return None


def kernel_name(mangled):
    """attention_kernel<18> of an entry function's mangled name."""
    text = subprocess.run(["c++filt", mangled], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\w+_kernel)(<[^>]*>)?\(", text.replace("(anonymous namespace)::", "").replace("(int)", ""))
    return found.group(1) + (found.group(2) or "") if found else mangled


def read_report(text):
    """(kernel, target, registers, stack bytes, spilled bytes) of each entry function."""
    rows = []
    for part in re.split(r"(?=ptxas info\s+: Compiling entry function)", text)[1:]:
        name, target = re.search(r"entry function '(\S+)' for '(\S+)'", part).groups()
        stack, stores, loads = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
                                         part).groups()
        registers = re.search(r"Used (\d+) registers", part).group(1)
        rows.append((kernel_name(name), target, int(registers), int(stack), int(stores) + int(loads)))
    return rows


def compile_source(nvcc, code, source):
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([nvcc, *FLAGS, *code, "-c", str(source), "-o", folder + "/object.o"], cwd=ROOT,
                              capture_output=True, text=True)


def main():
    nvcc = find_nvcc()
    if nvcc is None:
        print("check_cuda: nvcc is not here, nothing was compiled")
        return 0
    targets = sys.argv[1:] or TARGETS
    code = [f"-gencode=arch={t.replace('sm', 'compute')},code={t}" for t in targets]
    failed = False
    sources = sorted((ROOT / "kernels/cuda").glob("*.cu"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda source: compile_source(nvcc, code, source), sources))
    for done in results:
        if done.returncode != 0:
            print(done.stdout + done.stderr)
            return 1
        for name, target, registers, stack, spilled in read_report(done.stdout + done.stderr):
            wrong = spilled > 0 or (stack > 0 and name not in MAY_USE_STACK)
            failed = failed or wrong
            print(f"{name:50} {target:7} {registers:4} registers {stack:4} stack {spilled:4} spilled"
                  f"{'  <- refused' if wrong else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
