"""Kernels of residual networks as formulas in any precision; see docstrings of `oneof.kernels.convolutions`."""

import torch
from torch.nn.functional import conv2d, conv_transpose2d

PIXELS = (0, 2, 3)


def wide(vector):
    return vector[:, None, None]


def activated(x, norm):
    return x if norm is None else (wide(norm[0]) * x + wide(norm[1])).relu()


def sums(*images):
    """As if a single block of threads had added them up."""
    return torch.stack([each.sum(PIXELS) for each in images])[None]


def arrange(weight):
    return torch.stack([weight, weight])


def convolve(x, norm, weights):
    y = conv2d(activated(x, norm), weights, padding=1)
    return y, sums(y, y * y)


def statistics(y):
    return sums(y, y * y)


def normalisation(parts, count, gamma, beta, running, momentum, eps):
    mean, square = parts.sum(0) / count
    variance = square - mean**2
    inverse = (variance + eps) ** -0.5
    if running is not None:
        running[0].lerp_(mean, momentum)
        running[1].lerp_(variance * count / (count - 1), momentum)
        running[2].add_(1)
    return torch.stack([gamma * inverse, beta - mean * gamma * inverse, mean, inverse])


def correction(parts, norm, count, scale=0, shift=1):
    # With y^ = (y - mean) inverse, scale y + shift = gamma y^ + beta; so the gradient of y is, with means over
    # pixels, gamma inverse (d - mean(d) - y^ mean(d y^)), the last two of which are p y + q.
    d_scale, d_shift = parts.sum(0)[[scale, shift]]
    own_scale, _, mean, inverse = norm
    d_gamma = inverse * (d_scale - mean * d_shift)
    p = -own_scale * inverse * d_gamma / count
    return torch.stack([p, -p * mean - own_scale * d_shift / count, d_gamma, d_shift])


def correct(d, y, norm, correction):
    return wide(norm[0]) * d + wide(correction[0]) * y + wide(correction[1])


def convolve_sum(y, norm, z, weights):
    x = merge(y, norm, z, None)
    return x, *convolve(x, None, weights)


def input_gradient(d, y, norm, correction, weights, x, x_norm=None, more=None, raw=None):
    out = conv_transpose2d(correct(d, y, norm, correction), weights, padding=1)
    out = out if more is None else out + more
    if x_norm is not None:
        out = out * (activated(x, x_norm) > 0)
    if raw is not None:
        out = out * (x > 0)
    return out, sums(out * (x if raw is None else raw), out)


def weight_gradient(x, x_norm, d, y, norm, correction):
    gradient, size = correct(d, y, norm, correction), (y.shape[1], x.shape[1], 3, 3)
    return torch.nn.grad.conv2d_weight(activated(x, x_norm), size, gradient, padding=1)


def merge(y, norm, z, z_norm):
    shortcut = 0 if z is None else z if z_norm is None else wide(z_norm[0]) * z + wide(z_norm[1])
    return (wide(norm[0]) * y + wide(norm[1]) + shortcut).relu()


def merge_gradient(d, out, y, z, normalised):
    g = d * (out > 0)
    return g, sums(g * y, g, g * z if normalised else 0 * g)


FORMULAS = (
    arrange,
    convolve,
    convolve_sum,
    input_gradient,
    weight_gradient,
    statistics,
    normalisation,
    correction,
    correct,
    merge,
    merge_gradient,
)
