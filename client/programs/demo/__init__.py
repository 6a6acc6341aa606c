"""The command `demo`: show memoryd with a real daemon and three client processes in a temporary folder."""
