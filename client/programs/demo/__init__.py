"""demo: what memoryd does, shown with real files and three processes in a temporary folder that is removed again."""
