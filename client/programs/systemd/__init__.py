"""memoryd as a service of systemd's user manager: write, install, inspect and remove the unit files."""
