"""Other ways to use past studies, as Optuna samplers: what the method is compared with."""

from metatpe.baselines.rgpe import RGPESampler
from metatpe.baselines.tstr import TSTRSampler
from metatpe.baselines.warm_start import WarmStartSampler

__all__ = ["RGPESampler", "TSTRSampler", "WarmStartSampler"]
