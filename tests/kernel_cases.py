"""Batches of capsules in motion and of what they meet, from plain to malicious. Arrays are (n, 3)."""
import numpy as np


def log_uniform(rng, low, high, n):
    return 10.0 ** rng.uniform(np.log10(low), np.log10(high), n)


def directions(rng, n):
    v = rng.normal(size=(n, 3))
    return v / np.sqrt((v * v).sum(1))[:, None]


def across(rng, d):
    """Unit vectors at right angles to d."""
    v = np.cross(d, directions(rng, len(d)))
    return v / np.maximum(np.sqrt((v * v).sum(1)), 1e-300)[:, None]


def choose(rng, n, *shares):
    """An index per row, drawn with the given shares."""
    return rng.choice(len(shares), n, p=np.array(shares, float) / sum(shares))


def pick(which, *options):
    return np.choose(which[:, None], options)


def triangles(rng, n):
    """Any shape: round, slivers down to 1e-8 of their length, with edges along an axis."""
    v = rng.normal(size=(3, n, 3))
    sliver = rng.random(n) < 0.2
    thin = log_uniform(rng, 1e-8, 1e-1, n)[:, None]
    third = v[0] + (v[1] - v[0]) * rng.uniform(-0.5, 1.5, (n, 1)) + (v[2] - v[0]) * thin
    v[2] = np.where(sliver[:, None], third, v[2])
    return v


def weights_on(rng, n):
    """Barycentric weights on a vertex, an edge or anywhere in a triangle."""
    w = rng.dirichlet((1, 1, 1), n)
    feature = choose(rng, n, 1, 1, 1)
    w[feature == 1, 2] = 0
    vertex = np.eye(3)[rng.integers(3, size=n)]
    w = np.where((feature == 0)[:, None], vertex, w)
    return w / w.sum(1)[:, None]


def sweeps(rng, n, v, target_point, target_normal):
    """Capsules in motion that come near given points of a target of size 1.

    v: (k, n, 3) points that give directions to be parallel to: edges of the target.
    Some pass by, some graze, some aim at a point from a slope of down to 1e-9 over
    the plane across target_normal. -> p0, p1, radius, motion
    """
    radius = log_uniform(rng, 1e-2, 1e1, n)
    edge = v[1] - v[0]
    edge = edge / np.maximum(np.sqrt((edge * edge).sum(1)), 1e-300)[:, None]
    tangent = across(rng, target_normal)
    slope = log_uniform(rng, 1e-9, 1, n)[:, None]
    d = pick(choose(rng, n, 4, 4, 1, 1, 1), directions(rng, n), tangent - target_normal * slope, tangent, edge,
             edge - target_normal * slope)
    d = d / np.maximum(np.sqrt((d * d).sum(1)), 1e-300)[:, None]
    axis = pick(choose(rng, n, 6, 2, 2, 2, 1), directions(rng, n), d, edge, tangent, directions(rng, n) * slope + edge)
    height = log_uniform(rng, 1e-3, 1e1, n) * (rng.random(n) < 0.9)
    axis = axis * height[:, None]
    # Where the axis is when it touches: the point of it that is over the contact.
    share = pick(choose(rng, n, 1, 1, 1), np.zeros((n, 1)), np.ones((n, 1)), rng.random((n, 1)))
    lift = pick(choose(rng, n, 3, 2, 2), np.ones((n, 1)), 1 + rng.normal(size=(n, 1)) * slope,
                rng.normal(size=(n, 1)) * 2)
    contact = target_point + target_normal * radius[:, None] * lift
    back = log_uniform(rng, 1e-3, 1e2, n)[:, None] * (rng.random((n, 1)) < 0.95)
    far = rng.random((n, 1)) < 0.05
    back = np.where(far, 1e6, back)
    p0 = contact - axis * share - d * back
    motion = d * (back + log_uniform(rng, 1e-3, 1e1, n)[:, None])
    return p0, p0 + axis, radius, motion


def snapped(rng, n, *arrays):
    """Some rows on a coarse grid, so that figures meet exactly. Radii stay above 0."""
    grid = pick(choose(rng, n, 3, 1, 1), *(np.full((n, 1), g) for g in (0, 0.25, 1)))
    with np.errstate(all="ignore"):
        rows = [np.where(grid > 0, np.round(a / grid) * grid, a) if a.ndim == 2 else
                np.where(grid[:, 0] > 0, np.maximum(np.round(a / grid[:, 0]), 1) * grid[:, 0], a) for a in arrays]
    return rows


def scaled(rng, n, *arrays):
    """Each row times 1, or times anything from 1e-9 to 1e6."""
    k = np.where(rng.random(n) < 0.5, 1, log_uniform(rng, 1e-9, 1e6, n))
    return [a * (k[:, None] if a.ndim == 2 else k) for a in arrays]
