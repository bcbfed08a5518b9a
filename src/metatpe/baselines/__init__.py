"""Other methods that use past studies, as Optuna samplers. The benchmarks compare with them."""

from metatpe.baselines.rgpe import RGPESampler
from metatpe.baselines.tstr import TSTRSampler
from metatpe.baselines.warm_start import WarmStartSampler

__all__ = ["RGPESampler", "TSTRSampler", "WarmStartSampler"]
