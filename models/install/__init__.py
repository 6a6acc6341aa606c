"""Install models into the models folder: pull them by name, or import them from a folder of the user.

A lock file serialises installations. Each is built in a temporary folder and moved into place by one rename. An
interrupted one leaves downloads to resume in `.partial/`, and a folder that the next installation or daemon deletes
(`sweep`).
"""

from memoryd.models.install.foreign import import_directory
from memoryd.models.install.place import ReportStage, remove, sweep
from memoryd.models.install.pull import pull

__all__ = ["ReportStage", "import_directory", "pull", "remove", "sweep"]
