"""In: a spiking network and data. Out: what it does: accuracy, firing rates, operations, energy, error.

Nothing here changes a network, and nothing here prints or draws; that belongs to `report/`.
"""
