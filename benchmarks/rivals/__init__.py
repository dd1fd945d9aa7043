"""Other people's programs, and ours, each in a process of its own: ``python -m benchmarks.rivals KIND FOLDER THREADS``.

FOLDER holds what all of them are given: `Task`. A kind is a module here with a function ``offers(task)``.
"""
