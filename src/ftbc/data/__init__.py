"""In: a name, or a file or folder of images as they are published (CIFAR, ImageNet, .npz).
Out: ``Images``, bytes with labels that iterate as normalised batches ready for a network.
Not here: augmentation and anything else that only training needs, and models.
"""

from ftbc.data.cifar import read_cifar
from ftbc.data.fetch import fetch
from ftbc.data.imagenet import read_image_folder
from ftbc.data.images import NORMALISATIONS, Images, Normalise, Split
from ftbc.data.locate import load, open_to_train, read
from ftbc.data.npz import read_npz, write_npz
from ftbc.data.pictures import Pictures
from ftbc.data.sample import load_sample, make_sample

__all__ = [
    "NORMALISATIONS",
    "Images",
    "Normalise",
    "Pictures",
    "Split",
    "fetch",
    "load",
    "load_sample",
    "make_sample",
    "open_to_train",
    "read",
    "read_cifar",
    "read_image_folder",
    "read_npz",
    "write_npz",
]
