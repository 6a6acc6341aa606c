"""Parts of configuration files that many tests write."""

NO_JOBS = "[jobs]\nenabled = false\n"  # jobs run by themselves only where a test wants them to
NO_MODEL = '[model]\nname = "none"\nfetch = false\n'
