"""memoryd as a service of systemd's user manager: the unit files, how they are installed, watched and removed."""
