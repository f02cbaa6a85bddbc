"""Where the model files of the comparison are, and how the synthetic ones come to be."""
import os
import pathlib
import subprocess
import sys
import venv

GGUF_PACKAGE = "gguf==0.19.0"


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("INLAY_CACHE") or pathlib.Path(base) / "inlay")


def python_with(package, venv_name="bench-venv"):
    """An interpreter that has the package (`name` or `name==version`): a venv in the cache, which keeps what it has."""
    folder = cache_folder() / venv_name
    python = folder / "bin" / "python"
    module = package.split("==")[0].replace("-", "_")
    if not python.exists():
        venv.create(folder, with_pip=True)
    if subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode:
        print(f"installing {package} into {folder}", file=sys.stderr)
        subprocess.run([python, "-m", "pip", "install", "-q", package], check=True, stdout=sys.stderr)
    return python


def _synthetic(kind):
    path = cache_folder() / f"synthetic-llama-1b-{kind}.gguf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        script = pathlib.Path(__file__).with_name("make_synthetic.py")
        subprocess.run([python_with(GGUF_PACKAGE), script, "--type", kind, path], check=True)
    return path


def find_model(key, arguments):
    """The path of a row's model, or None when it is not here. `arguments` has the attributes smollm2 and gemma3."""
    if key.startswith("synthetic-"):
        return _synthetic(key.removeprefix("synthetic-"))
    defaults = {"smollm2": "smollm2-135m-instruct-q4_1.gguf", "gemma3": "gemma-3-270m-q4_k_m.gguf"}
    given = getattr(arguments, key) or os.environ.get(f"INLAY_{key.upper()}") or cache_folder() / defaults[key]
    path = pathlib.Path(given)
    return path if path.is_file() else None
