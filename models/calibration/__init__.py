"""Calibration: what the cosines of a model mean, found by running a bundled set of texts and questions through it.

It happens when a model is installed; one that was installed before, or with another edition of the set, is calibrated
when it is loaded. `Calibration` is kept in the model's manifest and is the one truth: the catalogue has no floors.
"""

from memoryd.models.calibration.calibrate import calibrate, edition
from memoryd.models.calibration.floors import Calibration, Floors

__all__ = ["Calibration", "Floors", "calibrate", "edition"]
