#!/usr/bin/env python3
"""Random blocks of this library's own weight formats and what they hold, by numpy from the
definitions: E4M3 as the OCP writes it, the others as sums and products of float32.

    pip install numpy; python3 make_own_blocks.py gguf/blocks

Writes <name>.bin and <name>.npy beside the blocks of ggml's formats.
"""
import sys

import numpy as np

BLOCKS = 24
rng = np.random.default_rng(20261130)


def bytes_of(array):
    return np.ascontiguousarray(array).view(np.uint8).reshape(BLOCKS, -1)


def half_scales():
    scales = rng.normal(0, 0.02, BLOCKS).astype(np.float16)
    scales[:4] = [0, 6e-8, -6e-8, 60000]
    return scales


def float_scales():
    scales = rng.normal(0, 0.02, BLOCKS).astype(np.float32)
    scales[:4] = [0, 1e-30, -3.5, 1e20]
    return scales


def e4m3(codes):
    """Sign, 4 bits of exponent with bias 7, 3 of mantissa; the code of NaN is 480 in these formats."""
    codes = codes.astype(np.int64)
    exponent, mantissa = codes >> 3 & 15, codes & 7
    normal = np.ldexp(8.0 + mantissa, exponent - 10)
    value = np.where(exponent == 0, np.ldexp(mantissa.astype(np.float64), -9), normal)
    return np.where(codes & 128, -value, value).astype(np.float32)


def zeroed(bits):
    scales, zeros = half_scales(), rng.integers(0, 2**bits, BLOCKS, dtype=np.uint8)
    quants = rng.integers(0, 2**bits, (BLOCKS, 32), dtype=np.uint8)
    packed = quants if bits == 8 else quants[:, :16] | quants[:, 16:] << 4
    values = scales.astype(np.float32)[:, None] * (
        quants.astype(np.int32) - zeros.astype(np.int32)[:, None]).astype(np.float32)
    return [bytes_of(scales), bytes_of(zeros), packed], values


def f8_e4m3():
    scales, codes = float_scales(), rng.integers(0, 256, (BLOCKS, 64), dtype=np.uint8)
    codes[4] = np.arange(64)
    codes[5] = np.arange(64, 128)
    return [bytes_of(scales), codes], e4m3(codes) * scales[:, None]


def q8_f32():
    scales, quants = float_scales(), rng.integers(-128, 128, (BLOCKS, 64), dtype=np.int8)
    return [bytes_of(scales), bytes_of(quants)], quants.astype(np.float32) * scales[:, None]


def mxfp8():
    exponents = rng.integers(100, 140, BLOCKS, dtype=np.uint8)
    exponents[:3] = [0, 1, 180]
    codes = rng.integers(0, 256, (BLOCKS, 32), dtype=np.uint8)
    scales = np.where(exponents == 0, 0.0, np.ldexp(1.0, exponents.astype(np.int32) - 127))
    return [bytes_of(exponents), codes], e4m3(codes) * scales.astype(np.float32)[:, None]


def nvfp4_f32():
    scales = float_scales()
    groups = rng.integers(0, 0x7f, (BLOCKS, 4), dtype=np.uint8)  # no sign, no NaN
    quants = rng.integers(0, 16, (BLOCKS, 4, 16), dtype=np.uint8)
    e2m1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)
    group_scales = e4m3(groups) / np.float32(2) * scales[:, None]
    values = (group_scales[:, :, None] * e2m1[quants]).reshape(BLOCKS, 64)
    return [bytes_of(scales), groups, bytes_of(quants[:, :, :8] | quants[:, :, 8:] << 4)], values


def bf16_24():
    kept = rng.normal(0, 0.05, (BLOCKS, 16)).astype(np.float32).view(np.uint32) >> 16
    masks = np.array([3, 5, 6, 9, 10, 12])[rng.integers(0, 6, (BLOCKS, 8))]
    has = (masks[:, :, None] >> np.arange(4) & 1).reshape(BLOCKS, 32).astype(bool)
    values = np.zeros((BLOCKS, 32), np.float32)
    values[has] = (kept << 16).astype(np.uint32).view(np.float32).reshape(-1)
    packed = (masks[:, 0::2] | masks[:, 1::2] << 4).astype(np.uint8)
    return [bytes_of(kept.astype(np.uint16)), packed], values


def main():
    formats = {"Q4_Z": zeroed(4), "Q8_Z": zeroed(8), "F8_E4M3": f8_e4m3(), "MXFP8": mxfp8(),
               "NVFP4_F32": nvfp4_f32(), "BF16_24": bf16_24(), "Q8_F32": q8_f32()}
    for name, (parts, values) in formats.items():
        np.concatenate(parts, axis=1).tofile(f"{sys.argv[1]}/{name}.bin")
        np.save(f"{sys.argv[1]}/{name}.npy", values.astype(np.float32))


main()
