"""Derivatives of a user's loss by automatic differentiation, with jax or torch.

In: loss(y, score), written with jax.numpy, torch or plain operators. Out: a function of
gradients and hessians.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ObjectiveError, ParameterError

Floats = NDArray[np.float64]
# (y, score) -> a loss for each row, which depends on that row only
Loss = Callable[[Any, Any], Any]
MIN_HESSIAN = 1e-6  # where a loss is not convex, so that steps stay finite


class Engine(NamedTuple):
    """A loss and its derivatives on NumPy arrays; scores are (n_rows) or (n_rows,
    n_outputs).
    """

    value: Callable[[Floats, Floats], Floats]
    derive: Callable[[Floats, Floats], tuple[Floats, Floats]]


def differentiate(loss: Loss) -> Callable[[Floats, Floats], tuple[Floats, Floats]]:
    """First and second derivatives of every row's loss, checked against finite
    differences at first use.
    """
    makers = [
        maker
        for library, maker in (("jax", _jax), ("torch", _torch))
        if find_spec(library)
    ]
    if not makers:
        raise ParameterError(
            "an objective with only a loss needs automatic differentiation; install jax or torch "
            "(pip install 'sapwood[autodiff]'), or give it grad_hess(y, score)."
        )
    chosen: list[Engine] = []

    def derive(y: Floats, score: Floats) -> tuple[Floats, Floats]:
        if not chosen:
            engine = _understood(makers, loss, y[:2], score[:2])
            _compare(engine, y[:100], score[:100])
            chosen.append(engine)
        g, h = chosen[0].derive(y, score)
        if (h > MIN_HESSIAN).mean() < 0.5:
            raise ObjectiveError(
                "the loss has a second derivative of 0 in most rows (kinks, or straight lines), so no step can be "
                "computed; give the objective grad_hess(y, score) with a positive bound of the hessian, such as 1."
            )
        return g, np.maximum(h, MIN_HESSIAN)

    return derive


def _understood(
    makers: Sequence[Callable[[Loss], Engine]], loss: Loss, y: Floats, score: Floats
) -> Engine:
    """The first engine whose arrays the loss takes; the last one is not tried, so its
    error is raised later.
    """
    for maker in makers[:-1]:
        engine = maker(loss)
        try:
            engine.derive(y, score)
        except Exception:  # a loss written for the other library may raise anything
            continue
        return engine
    return makers[-1](loss)


def _compare(engine: Engine, y: Floats, score: Floats) -> None:
    """Raise unless finite differences agree with the gradient; a few rows at kinks may
    differ.
    """
    shape = engine.value(y, score).shape
    if shape != (len(y),):
        raise ObjectiveError(
            f"the loss has shape {shape}; it needs one number per row: {(len(y),)}."
        )
    g, _ = engine.derive(y, score)
    for k in range(1 if score.ndim == 1 else score.shape[1]):
        step = np.zeros_like(score)
        step.reshape(len(score), -1)[:, k] = 1e-5
        slope = (engine.value(y, score + step) - engine.value(y, score - step)) / 2e-5
        mine = g.reshape(len(g), -1)[:, k]
        if (np.abs(slope - mine) > 1e-4 * np.maximum(1.0, np.abs(mine))).mean() > 0.1:
            raise ObjectiveError(
                "the derivatives of the loss disagree with finite differences; it must be smooth, and a row's loss "
                "must depend on that row only."
            )


def _jax(loss: Loss) -> Engine:
    import jax
    from jax import experimental

    double: Any = getattr(  # noqa: B009 (two names)
        jax if hasattr(jax, "enable_x64") else experimental, "enable_x64"
    )

    def value(y: Floats, score: Floats) -> Floats:
        with double(True):
            return np.asarray(loss(jax.numpy.asarray(y), jax.numpy.asarray(score)))

    def derive(y: Floats, score: Floats) -> tuple[Floats, Floats]:
        with double(True):
            labels, s = jax.numpy.asarray(y), jax.numpy.asarray(score)
            slope = jax.grad(lambda at: loss(labels, at).sum())
            h = np.zeros_like(score)
            for k in range(h.reshape(len(h), -1).shape[1]):
                along = np.zeros_like(score)
                along.reshape(len(h), -1)[:, k] = 1.0
                bend = np.asarray(jax.jvp(slope, (s,), (jax.numpy.asarray(along),))[1])
                h.reshape(len(h), -1)[:, k] = bend.reshape(len(h), -1)[:, k]
            return np.asarray(slope(s)), h

    return Engine(value, derive)


def _torch(loss: Loss) -> Engine:
    import torch

    def value(y: Floats, score: Floats) -> Floats:
        with torch.no_grad():
            return np.asarray(loss(torch.tensor(y), torch.tensor(score)))

    def derive(y: Floats, score: Floats) -> tuple[Floats, Floats]:
        s = torch.tensor(score, requires_grad=True)
        (g,) = torch.autograd.grad(loss(torch.tensor(y), s).sum(), s, create_graph=True)
        h = np.zeros_like(score)
        for k in range(h.reshape(len(h), -1).shape[1]):
            # a loss that is linear in the score has no second derivative
            if g.requires_grad:
                (bend,) = torch.autograd.grad(
                    g.reshape(len(h), -1)[:, k].sum(), s, retain_graph=True
                )
                # A clone, because a gradient known to be 0 may have no memory behind
                # it.
                h.reshape(len(h), -1)[:, k] = (
                    bend.clone().numpy().reshape(len(h), -1)[:, k]
                )
        return g.detach().numpy(), h

    return Engine(value, derive)
