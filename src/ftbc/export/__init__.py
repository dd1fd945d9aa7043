"""In: a converted network. Out: files and modules that other programs and chips read, each of which was run before it
was called done, with how faithful it is.

Nothing here converts or calibrates. Packages of other formats are imported where they are used.
"""

from ftbc.export.dialect import DIALECTS, Dialect
from ftbc.export.modules import to_snntorch, to_spikingjelly
from ftbc.export.nir_export import NirReport, nir
from ftbc.export.nir_read import read_nir
from ftbc.export.onnx_export import OnnxReport, onnx
from ftbc.export.verify import Verification, verify
from ftbc.export.weights import WeightsReport, weights

__all__ = [
    "DIALECTS",
    "Dialect",
    "NirReport",
    "OnnxReport",
    "Verification",
    "WeightsReport",
    "nir",
    "onnx",
    "read_nir",
    "to_snntorch",
    "to_spikingjelly",
    "verify",
    "weights",
]
