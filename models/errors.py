"""Errors of models: one class for each way in which the user can solve the problem."""


class ModelError(Exception):
    """An embedding model cannot be used; the message says what to do."""


class ModelMissing(ModelError):
    """The model is not installed in the models folder."""


class ModelBroken(ModelError):
    """A file of the model is damaged or not in the expected format."""


class ModelUnreachable(ModelError):
    """No source of the model can be reached, or none serves the right file."""
