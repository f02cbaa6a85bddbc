"""Reads from a GGUF header what one token costs: bytes of weights, multiply-adds, KV values."""
import dataclasses
import struct

# GGML type: (values a block, bytes a block); only the formats that the library reads.
BLOCKS = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 12: (256, 144),
          13: (256, 176), 14: (256, 210), 30: (1, 2)}
FLOAT_TYPES = {0, 1, 30}
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
KV_BYTES = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "int8": 1.0, "fp8": 1.0}


@dataclasses.dataclass
class Shape:
    layer_bytes: int = 0    # of all layers' matrices, each read once a step
    layer_weights: int = 0  # multiply-adds a token
    head_bytes: int = 0
    head_weights: int = 0
    kv_values: int = 0      # written by one token, all layers
    head_dim: int = 0
    integer: bool = True    # most weights are in an integer format

    def kv_bytes(self, kv):
        scale_bytes = 2.0 / self.head_dim if kv in ("int8", "fp8") else 0.0
        return self.kv_values * (KV_BYTES[kv] + scale_bytes)


def _unpack(file, code):
    return struct.unpack("<" + code, file.read(struct.calcsize("<" + code)))[0]


def _string(file):
    return file.read(_unpack(file, "Q")).decode("utf-8", "replace")


def _value(file, kind):
    if kind == 8:
        return _string(file)
    if kind == 9:
        inner, count = _unpack(file, "I"), _unpack(file, "Q")
        return [_value(file, inner) for _ in range(count)]
    return _unpack(file, SCALARS[kind])


def _read_header(path):
    with open(path, "rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError(f"{path}: not a GGUF file")
        file.read(4)
        num_tensors, num_keys = _unpack(file, "Q"), _unpack(file, "Q")
        metadata = {}
        for _ in range(num_keys):
            key = _string(file)
            metadata[key] = _value(file, _unpack(file, "I"))
        tensors = {}
        for _ in range(num_tensors):
            name = _string(file)
            dims = [_unpack(file, "Q") for _ in range(_unpack(file, "I"))]
            tensors[name] = (dims, _unpack(file, "I"))
            file.read(8)
    return metadata, tensors


def read_shape(path):
    metadata, tensors = _read_header(path)
    get = lambda key: metadata.get(f"{metadata['general.architecture']}.{key}")
    shape = Shape(head_dim=get("attention.key_length") or get("embedding_length") // get("attention.head_count"))
    shape.kv_values = get("block_count") * 2 * (get("attention.head_count_kv") or get("attention.head_count")) * shape.head_dim
    head = "output.weight" if "output.weight" in tensors else "token_embd.weight"
    float_weights = 0
    for name, (dims, kind) in tensors.items():
        if len(dims) != 2 or not (name.startswith("blk.") or name == head):
            continue
        weights = dims[0] * dims[1]
        per_block, block_bytes = BLOCKS[kind]
        size = weights // per_block * block_bytes
        float_weights += weights if kind in FLOAT_TYPES else 0
        if name == head:
            shape.head_weights, shape.head_bytes = weights, size
        else:
            shape.layer_weights += weights
            shape.layer_bytes += size
    shape.integer = 2 * float_weights < shape.layer_weights + shape.head_weights
    return shape


def limit_tokens_per_s(row, shape, machine):
    """No engine is faster here: weights read once a step, KV read once, each weight multiplied once a token.

    Arithmetic of attention is not counted, so long contexts have a somewhat lower true limit. None: there is no such limit.
    """
    read_rate = machine["read_gb_per_s"] * 1e9
    op_rate = (machine["int8_gop_per_s"] if shape.integer else machine["f32_gflop_per_s"]) * 1e9
    if row.kind == "prefill":
        read_bytes = shape.layer_bytes + shape.head_bytes
        ops = 2 * (row.prompt * shape.layer_weights + shape.head_weights)
        return row.prompt / max(read_bytes / read_rate, ops / op_rate)
    if row.kind in ("decode", "streams"):
        context = row.prompt + row.tokens / 2
        read_bytes = shape.layer_bytes + shape.head_bytes + row.streams * context * shape.kv_bytes(row.kv)
        ops = 2 * row.streams * (shape.layer_weights + shape.head_weights)
        return row.streams / max(read_bytes / read_rate, ops / op_rate)
    return None
