"""In: measurements. Out: what people look at: tables and plots.

Nothing here measures or converts; it only shows what `measure/` found.
"""
