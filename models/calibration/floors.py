"""What a model's cosines mean: the floors that the daemon asks of them, and their place on one scale for all models."""

from msgspec import Struct

# The cosines of the default model, which the daemon's scores and confidences were measured with.
FAR, NEAR = 0.35, 0.88


class Floors(Struct, frozen=True):
    """Cosines above which two texts count as …"""

    duplicate: float
    """… saying the same thing (a guard against look-alikes follows)."""
    relevant: float
    """… a question and something worth showing for it."""
    related: float
    """… worth showing for each other."""
    join: float
    """… belonging to one topic."""
    merge: float
    """… centres of the same topic."""
    far: float = FAR
    """Here the cosine of a question says as much of a memory as `FAR` of the default model …"""
    near: float = NEAR
    """… and here as much as its `NEAR`."""

    def rescale(self, cosine: float) -> float:
        """Return the cosine that says of a memory in the default model what this one says in this model."""
        if cosine <= self.near:
            slope = (NEAR - FAR) / (self.near - self.far)
            return cosine * slope + (FAR - self.far * slope)
        slope = (1.0 - NEAR) / max(1.0 - self.near, 1e-6)
        return cosine * slope + (1.0 - slope)


class Calibration(Struct, frozen=True):
    """What the bundled set tells of a model."""

    floors: Floors
    answered: dict[str, float]
    """By language the share of the set's questions whose answer is nearest, 0 to 1."""
    edition: str
    """Of the set and of the rules that it was made with."""
