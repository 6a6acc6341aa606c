"""The floors of a model: the least cosines that the daemon accepts, and their conversion to the default model's."""

from msgspec import Struct

# Cosines of the default model, with which the daemon's scores and confidences were measured.
FAR, NEAR = 0.35, 0.88


class Floors(Struct, frozen=True):
    """Cosines from which two texts count as …"""

    duplicate: float
    """… duplicates (a check against look-alikes follows)."""
    relevant: float
    """… a question and a text relevant to it."""
    related: float
    """… related to each other."""
    join: float
    """… parts of one topic."""
    merge: float
    """… centres of the same topic."""
    far: float = FAR
    """The cosine of a question and a memory that is equivalent to `FAR` of the default model …"""
    near: float = NEAR
    """… and the one that is equivalent to its `NEAR`."""

    def rescale(self, cosine: float) -> float:
        """Return the equivalent cosine of the default model."""
        if cosine <= self.near:
            slope = (NEAR - FAR) / (self.near - self.far)
            return cosine * slope + (FAR - self.far * slope)
        slope = (1.0 - NEAR) / max(1.0 - self.near, 1e-6)
        return cosine * slope + (1.0 - slope)

    def restore(self, cosine: float) -> float:
        """Return the cosine of this model that is equivalent to one of the default model."""
        if cosine <= NEAR:
            return self.far + (cosine - FAR) * (self.near - self.far) / (NEAR - FAR)
        return 1.0 - (1.0 - cosine) * max(1.0 - self.near, 1e-6) / (1.0 - NEAR)


class Calibration(Struct, frozen=True):
    """Result of running the bundled set through a model."""

    floors: Floors
    answered: dict[str, float]
    """Share of the set's questions whose answer is nearest, 0 to 1, by language."""
    edition: str
    """Edition of the set and of the constants."""
