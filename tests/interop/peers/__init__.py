"""Programs that read NIR, each as its own documentation says, in environments of their own, without ftbc.

Called as ``python with_NAME.py FILE.nir INPUT.npz OUTPUT.npz``. The input over time, ``x`` ``[T, N, ...]``, goes
in; the outputs, ``outputs`` ``[T, N, ...]``, and the spikes of each layer, ``[T, N, ...]``, come out.
"""
