#!/usr/bin/env python3
"""Groups of weights and the least error that 4 bits can have for them. Needs numpy.

Usage: make_fit_golden.py > quant/fit_golden.json

One scale: exact. The quants of a group change only where scale = weight / (k + 1/2), so that one regression for each
interval between such scales, of either sign, meets the best. Scale and minimum: 400 x 400 starts, each followed by
regressions until nothing gains; no proof, but thousands of times the starts that a loader can afford. Errors are those
of scales in float64: f16 ones have a little more.
"""
import json
import sys

import numpy as np

GROUPS = 24


def best_scale(x):
    edges = [abs(w) / (k + 0.5) for w in x if w != 0 for k in range(0, 9)]
    edges = np.unique(np.array(edges))
    middles = np.concatenate([(edges[1:] + edges[:-1]) / 2, [edges[-1] * 1.01, edges[0] * 0.99]])
    best = (x * x).sum()
    for scale in np.concatenate([middles, -middles]):
        q = np.clip(np.rint(x / scale), -8, 7)
        qq = (q * q).sum()
        if qq > 0:
            s = (q * x).sum() / qq
            best = min(best, ((x - s * q) ** 2).sum())
    return best


def regress(x, scale, low):
    """Of many (scale, low) at once: the regression that follows, and its error."""
    q = np.clip(np.rint((x - low[:, None]) / scale[:, None]), 0, 15)
    w, hx = len(x), x.sum()
    sq, sqq, sqx = q.sum(1), (q * q).sum(1), (q * x).sum(1)
    determinant = w * sqq - sq * sq
    fine = determinant > 1e-12
    s = np.where(fine, (w * sqx - sq * hx) / np.where(fine, determinant, 1), scale)
    m = np.where(fine, (hx - s * sq) / w, low)
    error = ((x - s[:, None] * q - m[:, None]) ** 2).sum(1)
    return np.where(s > 0, s, scale), m, error


def best_affine(x):
    width = x.max() - x.min()
    low, high = (g.ravel() for g in np.meshgrid(np.linspace(-0.1, 0.4, 400), np.linspace(-0.1, 0.4, 400)))
    keep = low + high < 0.7
    scale, low = width * (1 - low - high)[keep] / 15, x.min() + width * low[keep]
    best = np.inf
    for _ in range(6):
        scale, low, error = regress(x, scale, low)
        best = min(best, error.min())
    return best


def main():
    random = np.random.default_rng(20261130)
    groups = []
    for i in range(GROUPS):
        x = random.standard_normal(32) * 0.02
        if i % 4 == 1:
            x = random.laplace(size=32) * 0.02  # heavy tails
        if i % 4 == 2:
            x += 0.03  # off centre
        if i % 8 == 3:
            x[random.integers(32)] = 0.3  # an outlier
        x = x.astype(np.float32).astype(np.float64)
        groups.append({"weights": [float(v) for v in x], "scale_error": float(best_scale(x)),
                       "affine_error": float(best_affine(x))})
    json.dump(groups, sys.stdout)


main()
