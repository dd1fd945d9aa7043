"""Methods side by side on one network; a second run is over at once: python examples/comparing.py"""

import ftbc

ann = ftbc.zoo.load("resnet20-cifar10")
calibration, test = ftbc.data.load("cifar10-sample", test=200)
table = ftbc.compare(
    ann, calibration, test,
    recipes=["maximum", "mean-square", "ftbc"],
    steps=[2, 4],
    seeds=2,  # two draws of 256 calibration images
    results="comparison",  # every measurement is kept here
)  # fmt: skip
print(table)
table.to_latex("table.tex")
table.to_csv("table.csv")
