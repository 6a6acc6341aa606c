"""Put models into the models folder: pulled by name, or imported from a folder of the user's.

Installations are serialised by a lock file, built beside their place and moved there in one rename; an interrupted one
leaves downloads to resume in `.partial/`, and a folder that the next one or the next daemon deletes (`sweep`).
"""

from memoryd.models.install.foreign import import_directory
from memoryd.models.install.place import ReportStage, remove, sweep
from memoryd.models.install.pull import pull

__all__ = ["ReportStage", "import_directory", "pull", "remove", "sweep"]
