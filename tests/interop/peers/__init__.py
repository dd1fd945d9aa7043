"""Programs that read NIR, each as its own documentation says, in environments of their own, without ftbc.

Each is called as ``python with_NAME.py FILE.nir INPUT.npz OUTPUT.npz``: the input over time, ``x`` ``[T, N, ...]``, goes in,
and the outputs, ``outputs`` ``[T, N, ...]``, and spikes, by name of layer ``[T, N, ...]``, come out.
"""
