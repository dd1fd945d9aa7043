"""Files for chips and simulators, each run again and compared: python examples/exporting.py (needs ftbc[nir,onnx])"""

import ftbc

ann = ftbc.zoo.load("resnet20-cifar10")
calibration, test = ftbc.data.load("cifar10-sample", calibration=64, test=20)
snn = ftbc.convert(ann, calibration, steps=4)

print(ftbc.export.nir(snn, "resnet20.nir"))  # how faithful, and what a reader must know
print(ftbc.export.onnx(snn, "resnet20.onnx"))
print(ftbc.export.weights(snn, "resnet20.npz", calibration.tensor()))  # integers of 8 bits
print(ftbc.export.verify("resnet20.nir", snn, test))
