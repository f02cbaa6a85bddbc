#!/usr/bin/env python3
"""llm-eval against another implementation's perplexities and divergences, and the bounds on what KV dtypes cost.
Usage: eval_golden_test.py PROGRAM MODEL SHARED_DATA. The trained model is in SHARED_DATA alone."""
import array
import json
import pathlib
import shutil
import struct
import sys
import tempfile
import unittest

from tool_util import OTHERS, ToolTest, main, run_well

DATA = pathlib.Path(OTHERS[0])
TRAINED = DATA / "real/trained-5m"


def evaluate(model, *flags):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "out.json"
        run_well(model, "--text", TRAINED / "heldout.txt", "--json", path, *flags)
        return json.loads(path.read_text())


def floats_of_bf16(data):
    words = array.array("H", data)
    return array.array("f", struct.pack(f"<{len(words)}I", *(word << 16 for word in words)))


def rounded(values, group, most, least):
    """Each group of `group` values rounded to multiples of its float32 scale max/`most`."""
    out = array.array("f")
    for begin in range(0, len(values), group):
        part = values[begin:begin + group]
        largest = max(max(part), -min(part))
        scale = array.array("f", [largest / most])[0] or 1.0
        out.extend(max(least, min(most, round(array.array("f", [x / scale])[0]))) * scale for x in part)
    return out


def write_model(folder, change, extra=()):
    """The trained model with the linear layers as change(shape, floats) makes them, in float32, and with `extra` numbers."""
    for file in TRAINED.iterdir():
        if file.suffix == ".json" and "golden" not in file.name:
            shutil.copy(file, folder)
    data = (TRAINED / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header, out, offset = json.loads(data[8:8 + size]), [], 0
    metadata = header.pop("__metadata__", {})
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        out.append(data[8 + size + begin:8 + size + end])
        if change and "_proj" in name:
            out[-1] = change(tensor["shape"], floats_of_bf16(out[-1])).tobytes()
            tensor["dtype"] = "F32"
        tensor["data_offsets"] = [offset, offset + len(out[-1])]
        offset += len(out[-1])
    for name, value in extra:
        header[name] = {"dtype": "F32", "shape": [1], "data_offsets": [offset, offset + 4]}
        out.append(struct.pack("<f", value))
        offset += 4
    text = json.dumps(header | {"__metadata__": metadata}).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(out))


class GoldenTest(ToolTest):
    def setUp(self):
        self.golden = json.loads((TRAINED / "text_golden.json").read_text())

    def test_perplexity_and_divergence_are_those_of_the_float32_implementation(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_model(folder, lambda shape, values: rounded(values, 32, 7, -8))
            got = evaluate(TRAINED, "--windows", 24, "--float-activations", "--kv-dtypes", "f32", "--weights",
                           f"model={folder}", "--no-speed")
        text = self.golden["texts"]["jargon"]
        self.assertAlmostEqual(got["base"]["perplexity"], text["perplexity"], delta=1e-3)
        for mean, golden in zip(got["base"]["window_mean_nll"], text["per_window_mean_nll"]):
            self.assertAlmostEqual(mean, golden, delta=2e-5)
        same, rounded_row = got["rows"]
        self.assertEqual(same["kl_mean"], 0)
        method = self.golden["rtn_reference"]["methods"]["int4_g32_sym"]["jargon"]
        self.assertAlmostEqual(rounded_row["perplexity"], method["perplexity"], delta=1e-3)
        self.assertAlmostEqual(rounded_row["kl_mean"] / method["mean_kld_vs_float"], 1, delta=1e-3)
        # Near ties may fall either way: 3 of 6144 tokens.
        self.assertAlmostEqual(rounded_row["top1_agreement"], method["top1_agreement"], delta=3.5 / 6144)

    def test_kv_of_eight_bits_costs_less_than_a_thousandth_of_a_nat(self):
        got = evaluate(DATA / "real/trained-5m.bf16.gguf", "--windows", 6, "--kv-dtypes", "f16,fp8,int8", "--no-speed")
        f16, fp8, int8 = got["rows"]
        self.assertLess(f16["kl_mean"], 1e-5)
        for row in (fp8, int8):
            self.assertLess(row["kl_mean"], 1e-3)
            self.assertGreater(row["top1_agreement"], 0.97)
        self.assertLess(int8["kl_mean"], fp8["kl_mean"])

    def test_scales_of_the_checkpoint_cost_no_more_and_save_the_tokens_own(self):
        scales = [(f"model.layers.{layer}.self_attn.{name}", value) for layer in range(6)
                  for name, value in (("k_scale", 0.1), ("v_scale", 0.02))]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_model(folder, None, scales)
            fp8, int8 = evaluate(folder, "--windows", 6, "--kv-dtypes", "fp8,int8", "--no-speed")["rows"]
        self.assertLess(fp8["kl_mean"], 1e-3)
        self.assertGreater(fp8["sequence_gain"], 1.95)
        self.assertLess(int8["sequence_gain"], 1.9)  # has none of them


if __name__ == "__main__":
    if not TRAINED.is_dir():
        print(f"skipped: no {TRAINED}")
        sys.exit(0)
    main()
