"""One page that shows what a conversion does, layer by layer and step by step: python examples/report.py"""

import ftbc
from ftbc.conversion_report import conversion_page
from ftbc.report import html

ann = ftbc.zoo.load("resnet20-cifar10")
calibration, test = ftbc.data.load("cifar10-sample", calibration=128, test=100)
snn = ftbc.convert(ann, calibration, steps=8)
plain = ftbc.convert(ann, calibration, steps=8, recipe="mean-square")

page = conversion_page(ann, snn, test, calibration.tensor(), {"mean-square": plain})
html.write("report.html", page)  # opens in any browser, needs no network
print(page.summary)
