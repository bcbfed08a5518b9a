"""Gaussian processes of the mixed space, for the tests of models and of what is built on them."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from helpers import MIXED

from metatpe.gp.process import Encoder, GaussianProcess, fit
from metatpe.space import Floats

needs_botorch = pytest.mark.skipif(
    find_spec("botorch") is None, reason="the extra `gp` is not installed"
)
ENCODE = Encoder(MIXED.columns)
DEGENERATE: dict[str, tuple[list[int], list[float]]] = {  # rows of some points, and losses
    "none": ([], []),
    "one": ([0], [0.0]),
    "constant": ([0, 1, 2], [0.0, 0.0, 0.0]),
    "one point 30 times": ([0] * 30, [0.0] * 30),
    "two points, noise": ([0] * 15 + [1] * 15, [1.0, -1.0] * 15),
    "contradiction": ([0, 0, 1, 1, 2, 2], [2.0, -2.0, 0.0, 0.0, 1.0, -1.0]),
}


def smooth(X: Floats) -> Floats:  # (n, d) -> (n,)
    """Return a function of points of the mixed space, standardised."""
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + 0.5 * X[:, 2] - 0.3 * (X[:, 4] > 0.5)
    return (y - y.mean()) / y.std()


def fitted(X: Floats, y: Floats) -> GaussianProcess:
    """Return the process of observations (n, d), NaN where a parameter was not used."""
    return fit(ENCODE(X), y, ENCODE.owner, ~np.isnan(X).all(axis=0))


def botorch_model(model: GaussianProcess, features: Floats, y: Floats) -> object:
    """Return the process as BoTorch has it."""
    import torch
    from botorch.models import SingleTaskGP
    from gpytorch.constraints import GreaterThan
    from gpytorch.kernels import MaternKernel, ScaleKernel
    from gpytorch.likelihoods import GaussianLikelihood
    from gpytorch.means import ZeroMean

    # A length scale that is nearly infinite where a feature has no part.
    scale = torch.from_numpy(np.maximum(model.scale, 1e-8))
    matern = MaternKernel(nu=2.5, ard_num_dims=features.shape[1])
    matern.lengthscale = 1.0 / scale
    kernel = ScaleKernel(matern)
    kernel.outputscale = model.amplitude
    likelihood = GaussianLikelihood(noise_constraint=GreaterThan(1e-8))
    likelihood.noise = model.amplitude * model.noise
    return SingleTaskGP(
        torch.from_numpy(features),
        torch.from_numpy(y[:, None]),
        likelihood=likelihood.double(),
        covar_module=kernel.double(),
        mean_module=ZeroMean(),
        outcome_transform=None,
    )
