"""What can go wrong with a model: one class per thing the user can do about it."""

from __future__ import annotations


class ModelError(Exception):
    """Any trouble with an embedding model; the message says what to do."""


class ModelMissing(ModelError):
    """The model is not installed in the models folder."""


class ModelBroken(ModelError):
    """A file of the model is damaged, or is not what the format asks for."""


class ModelUnavailable(ModelError):
    """No source of the model can be reached, or none serves the right file."""
