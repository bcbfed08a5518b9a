"""Gaussian processes for samplers that model objectives: of one task, and of one with a past."""
