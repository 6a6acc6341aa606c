"""Language models: the interface of a provider, one for the OpenAI-compatible chat API, and the choice between them.

Every task has rules, which are used if no model is configured or if it fails; results say which was used.
"""
