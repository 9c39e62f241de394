"""core/math/real.h again, in NumPy: the same operations in the same order, so the same
bits; no np.exp, no np.log.

A float64 array enters each function; one of the same shape leaves.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bits = NDArray[np.uint64]

# adding and subtracting it rounds to an integer, half to even
ROUND = float.fromhex("0x1.8p52")
ROUND_BITS = np.float64(ROUND).view(np.uint64)
LN2_HI, LN2_LO = (
    float.fromhex("0x1.62e42feep-1"),
    float.fromhex("0x1.a39ef35793c76p-33"),
)
LN2 = float.fromhex("0x1.62e42fefa39efp-1")
LOG2E = float.fromhex("0x1.71547652b82fep0")
EXP = [
    float.fromhex(c)
    for c in (
        "0x1.6124613a86d09p-33",
        "0x1.1eed8eff8d898p-29",
        "0x1.ae64567f544e4p-26",
        "0x1.27e4fb7789f5cp-22",
        "0x1.71de3a556c734p-19",
        "0x1.a01a01a01a01ap-16",
        "0x1.a01a01a01a01ap-13",
        "0x1.6c16c16c16c17p-10",
        "0x1.1111111111111p-7",
        "0x1.5555555555555p-5",
        "0x1.5555555555555p-3",
        "0x1p-1",
    )
]
ODD = [
    float.fromhex(c)
    for c in ("0x1.39a09d078c69fp-3", "0x1.c71c51d8e78afp-3", "0x1.999999997fa04p-2")
]
EVEN = [
    float.fromhex(c)
    for c in (
        "0x1.2f112df3e5244p-3",
        "0x1.7466496cb03dep-3",
        "0x1.2492494229359p-2",
        "0x1.5555555555593p-1",
    )
]
SQRT_TWO = float.fromhex("0x1.6a09e667f3bcdp0")
SQRT_HALF, FRACTION = np.uint64(0x3FE6A09E667F3BCD), np.uint64(0x000FFFFFFFFFFFFF)
ONE, BITS_52 = np.uint64(0x3FF0000000000000), np.uint64(52)


def horner(coefficients: list[float], x: Floats) -> Floats:
    """The first coefficient belongs to the highest power."""
    p = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        p = p * x + c
    return p


def power(biased: Bits) -> Floats:
    """2^(biased - 1023)."""
    return (biased << BITS_52).view(np.float64)


def reduce(x: Floats) -> tuple[Floats, Bits, Floats]:
    """x = k ln2 + r; k as a float, and as a two's complement integer."""
    shifted = x * LOG2E + ROUND
    k = shifted - ROUND
    return k, shifted.view(np.uint64) - ROUND_BITS, (x - k * LN2_HI) - k * LN2_LO


def exp_tail(r: Floats) -> Floats:
    """e^r - 1 for |r| <= ln(2)/2."""
    return r + (r * r) * horner(EXP, r)


def exp(x: Floats) -> Floats:
    """e^x, scaled in two halves."""
    x = np.where(x < -746.0, -746.0, x)
    x = np.where(x > 710.0, 710.0, x)
    _, whole, r = reduce(x)
    biased = whole + np.uint64(2048)
    half = biased >> np.uint64(1)
    with np.errstate(over="ignore", under="ignore"):
        return ((1.0 + exp_tail(r)) * power(half - np.uint64(1))) * power(
            biased - half - np.uint64(1)
        )


def expm1(x: Floats) -> Floats:
    """e^x - 1."""
    k, whole, r = reduce(np.clip(x, -40.0, 37.0))
    tail = exp_tail(r)
    s = power(whole + np.uint64(1023))
    near = np.where(k == 0.0, tail, s * tail + (s - 1.0))
    return np.where(x < -40.0, -1.0 + exp(x), np.where(x > 37.0, exp(x) - 1.0, near))


def log_split(x: Floats) -> tuple[Floats, Floats]:
    """x = 2^k (1 + f); k and f."""
    u = x.view(np.uint64) + (ONE - SQRT_HALF)
    k = (u >> BITS_52).astype(np.int64) - 1023
    return k.astype(np.float64), ((u & FRACTION) + SQRT_HALF).view(np.float64) - 1.0


def log_tail(f: Floats, k: Floats, c: Floats) -> Floats:
    """log(1 + f) + k ln2 + c."""
    half = 0.5 * f * f
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    t1 = w * horner(ODD, w)
    t2 = z * horner(EVEN, w)
    return k * LN2_HI - ((half - (s * (half + (t1 + t2)) + (k * LN2_LO + c))) - f)


def log(x: Floats) -> Floats:
    """Natural logarithm; -inf at 0, NaN below."""
    inside = (x > 0.0) & (x < np.inf)
    x1 = np.where(inside, x, 1.0)
    small = x1 < 2.0**-1022
    k, f = log_split(x1 * np.where(small, 2.0**54, 1.0))
    y = log_tail(f, k + np.where(small, -54.0, 0.0), np.zeros_like(x))
    return np.where(
        inside, y, np.where(x == 0.0, -np.inf, np.where(x > 0.0, x, np.nan))
    )


def log1p(x: Floats) -> Floats:
    """log(1 + x)."""
    inside = (x > -1.0) & (x < np.inf)
    x1 = np.where(inside, x, 0.0)
    u = 1.0 + x1
    c = np.where(u < 2.0, x1 - (u - 1.0), 1.0 - (u - x1))
    k, f = log_split(u)
    near = (x1 > -0.2928) & (x1 < 0.4142)
    tiny = np.abs(x1) < 2.0**-54
    zero = np.zeros_like(x1)
    close = np.where(tiny, x1, log_tail(np.where(near, x1, 0.0), zero, zero))
    y = np.where(near, close, log_tail(f, k, c / u))
    return np.where(
        inside, y, np.where(x == -1.0, -np.inf, np.where(x > 0.0, x, np.nan))
    )


def sigmoid(s: Floats) -> Floats:
    """NUMERICS 7."""
    z = exp(-np.abs(s))
    r = 1.0 / (1.0 + z)
    return np.where(s >= 0.0, r, z * r)


def softplus(s: Floats) -> Floats:
    """log(1 + e^s)."""
    z = exp(-np.abs(s))
    u = 1.0 + z
    high = u >= SQRT_TWO
    f = np.where(high, 0.5 * u, u) - 1.0
    return np.where(s > 0.0, s, 0.0) + log_tail(
        f, np.where(high, 1.0, 0.0), (z - (u - 1.0)) / u
    )


def tanh(x: Floats) -> Floats:
    """(e^x - e^-x) / (e^x + e^-x)."""
    a = np.abs(x)
    _, whole, r = reduce(np.where(a > 20.0, -40.0, -2.0 * a))
    s = power(whole + np.uint64(1023))
    m = s * exp_tail(r) + (s - 1.0)
    t = -m / (2.0 + m)
    return np.where(x < 0.0, -t, t)
