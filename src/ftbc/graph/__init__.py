"""In: any trained nn.Module. Out: a clean `Graph`, in which each operation is linear, a maximum or an activation.

Nothing here knows of spikes, time steps or calibration; `neuron/` and later folders do.
"""
