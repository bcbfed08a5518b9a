"""Other ways to use past studies, as Optuna samplers: what the method is compared with.

Importing them loads no torch; RGPE and TST-R load it with their first model (extra `gp`).
"""

from metatpe.baselines.rgpe import RGPESampler
from metatpe.baselines.tstr import TSTRSampler
from metatpe.baselines.warm_start import WarmStartSampler

__all__ = ["RGPESampler", "TSTRSampler", "WarmStartSampler"]
