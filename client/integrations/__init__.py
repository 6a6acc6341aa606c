"""Adapters for frameworks that agents are built with. Each needs its framework; nothing else imports one."""
