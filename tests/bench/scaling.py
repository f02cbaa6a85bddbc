"""The shape of scaling: tokens per second over the number of sequences, time per token over the context."""
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys

from models import python_with
from rows import Row

DRAWING_PACKAGE = "matplotlib==3.11.2"


@dataclasses.dataclass(frozen=True)
class Curve:
    name: str      # of its files
    title: str
    model: str     # a key of models.py
    kind: str      # streams: x is the number of sequences; context: x is the tokens before the measured ones
    points: tuple
    tokens: int    # measured at each point, of each stream
    prompt: int = 32

    @property
    def x_label(self):
        return "sequences" if self.kind == "streams" else "context, tokens"

    @property
    def y_label(self):
        return "tokens/s, all sequences" if self.kind == "streams" else "ms per token"

    def row(self, x):
        if self.kind == "streams":
            return Row(self.name, self.model, "streams", self.prompt, self.tokens, x)
        return Row(self.name, self.model, "decode", x, self.tokens)


SEQUENCES = (1, 2, 4, 8, 16, 32, 64)
CURVES = [
    Curve("smollm2-sequences", "SmolLM2-135M Q4_1, 32-token prompts", "smollm2", "streams", SEQUENCES, 32),
    Curve("smollm2-context", "SmolLM2-135M Q4_1, one stream, KV f16", "smollm2", "context",
          (0, 512, 1024, 2048, 4096, 6144, 8128), 32),
    Curve("llama-1b-sequences", "Llama 1B shape Q4_0, 32-token prompts", "synthetic-q4_0", "streams", SEQUENCES, 16),
    Curve("llama-1b-context", "Llama 1B shape Q4_0, one stream, KV f16", "synthetic-q4_0", "context",
          (0, 1024, 2048, 4096, 8192, 16256), 16),
]


def _peer_setting(curve, model, peer):
    """The best at a point in the middle; every setting at every point would take an hour."""
    if curve.kind == "streams":
        return peer.sweep(curve.row(8), model)
    depth = curve.points[1]
    tried = [(setting, 1000 * peer.times_by_context(model, [depth], curve.tokens, setting)[depth])
             for setting in peer.settings(curve.row(depth))]
    return sorted(tried, key=lambda pair: pair[1])


def _measure_once(curve, model, setting, ours, peer, points):
    """{x: (ours, peer, cores that others kept busy)}. Where the peer can start at a point, the two are neighbours in time."""
    taken = {}
    times = peer.times_by_context(model, points, curve.tokens, setting) if curve.kind == "context" else {}
    for x in points:
        run = ours.measure(curve.row(x), model)
        if curve.kind == "context":
            taken[x] = (1000 / run["value"], 1000 * times[x], run["others_cores"])
        else:
            other = peer.measure(curve.row(x), model, setting)
            taken[x] = (run["value"], other["value"], max(run["others_cores"], other["others_cores"]))
    return taken


def summarise(curve, tried, passes):
    """What the data file holds. passes: as _measure_once returns them."""
    taken = {x: [once[x] for once in passes if x in once] for x in curve.points}
    return {
        "name": curve.name, "title": curve.title, "x_label": curve.x_label, "y_label": curve.y_label, "sweep": tried,
        "points": [{"x": x, "ours": statistics.median(pair[0] for pair in pairs),
                    "peer": statistics.median(pair[1] for pair in pairs), "pairs": pairs}
                   for x, pairs in taken.items() if pairs],
    }


def _earlier_passes(data):
    """The passes of a data file, so that more can be added."""
    most = max((len(point["pairs"]) for point in data["points"]), default=0)
    return [{point["x"]: point["pairs"][index] for point in data["points"] if index < len(point["pairs"])}
            for index in range(most)]


def measure(curve, model, ours, peer, pairs, most=None, earlier=None):
    """Yields what the data file holds after each pass. `most`: leave out the points beyond it; `earlier`: add to this."""
    points = [x for x in curve.points if most is None or x <= most]
    tried = earlier["sweep"] if earlier else _peer_setting(curve, model, peer)
    passes = _earlier_passes(earlier) if earlier else []
    for _ in range(pairs):
        passes.append(_measure_once(curve, model, tried[0][0], ours, peer, points))
        yield summarise(curve, tried, passes)


def format_table(data):
    """A Markdown table of one data file, points as columns."""
    cell = lambda value: f"{value:.3g}" if value < 100 else f"{value:,.0f}"
    lines = [[f"{data['title']}: {data['x_label']}", *(f"{point['x']:,}" for point in data["points"])],
             [f"Inlay, {data['y_label']}", *(cell(point["ours"]) for point in data["points"])],
             [f"llama.cpp, {data['y_label']}", *(cell(point["peer"]) for point in data["points"])]]
    lines.insert(1, ["---"] * len(lines[0]))
    lines.append(["cores that other processes kept busy, at worst",
                  *(f"{max(pair[2] for pair in point['pairs']):.2f}" for point in data["points"])])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def draw(folder):
    """A PNG beside each data file of the folder; matplotlib lives in the comparison's own venv."""
    files = sorted(pathlib.Path(folder).glob("*.json"))
    script = pathlib.Path(__file__).with_name("draw_curves.py")
    subprocess.run([python_with(DRAWING_PACKAGE), script, *files], check=True, stdout=sys.stderr)


def _path(name, folder):
    return pathlib.Path(folder) / f"{name}.json"


def read(curve, folder):
    """The data file of an earlier call; None: there is none."""
    path = _path(curve.name, folder)
    return json.loads(path.read_text()) if path.exists() else None


def write(data, about, folder):
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    _path(data["name"], folder).write_text(json.dumps({**about, **data}, indent=1) + "\n")
