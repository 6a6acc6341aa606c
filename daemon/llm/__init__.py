"""Language models: what a provider does, one that speaks the OpenAI-compatible chat API, and which one is used.

Every job of cognition has rules that are used when no model is set or it fails; results say which ran.
"""
