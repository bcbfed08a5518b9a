"""Gaussian processes on arrays: models, scales, acquisition, search."""
