"""The paper's method on arrays: split, densities, importance, task kernel, acquisition."""
