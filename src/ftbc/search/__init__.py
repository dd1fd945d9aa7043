"""In: a recipe, a space of its settings in TOML, training images. Out: the settings that are best on held-out ones.

The proposals come from Optuna (the extra ``search``); what a setting is worth is measured as `ftbc.compare` measures.
"""
