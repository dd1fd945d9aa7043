"""In: a network, recipes, numbers of steps, calibration and test images. Out: rows of figures that can be compared.

What `ftbc.compare` is made of: the plan, the images of each draw, the work, the folder that keeps every measurement.
One conversion or evaluation belongs to `convert.py` and `measure/`; how rows are shown belongs to `report/`.
"""
