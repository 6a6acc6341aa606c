"""Calibration: find the similarity thresholds (floors) of a model by running a bundled set of texts through it.

A model is calibrated when it is installed; one without a calibration, or with that of another edition of the set, when
it is loaded. The `Calibration` is stored in the model's manifest, and nowhere else: the catalog has no floors.
"""

from memoryd.models.calibration.calibrate import calibrate, edition
from memoryd.models.calibration.floors import Calibration, Floors

__all__ = ["Calibration", "Floors", "calibrate", "edition"]
