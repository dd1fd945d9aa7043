"""What to tell a user about an operation that spikes cannot pass."""

from __future__ import annotations

_TRAIN_WITH_RELU = "replace it by nn.ReLU and fine-tune the network before converting"
_NORM = "it divides by statistics of each input; train with BatchNorm, which folds into the weights"
_PRODUCT = (
    "products of activations are not linear; convert the part before and the part after it separately. A product with "
    "a constant converts as nn.Linear over the last dimension, or as a convolution"
)
_MAXIMUM = "spikes pass a maximum only through a pooling layer; use nn.MaxPool or nn.AdaptiveMaxPool, or nn.ReLU"
_RECURRENT = "recurrent layers carry a state of their own; convert only the feed-forward submodule"
_LAST = "it converts only as the very last operation; inside the network replace it by nn.ReLU and fine-tune"
_DECISION = "return the scores, and decide outside of the network"
_COMPARISON = "a choice by value is not linear; write the activation as nn.ReLU or clamp, which are recognised"

_REMEDIES = {
    **dict.fromkeys(
        ("gelu", "GELU", "silu", "SiLU", "silu_", "hardswish", "Hardswish", "hardswish_", "mish", "Mish", "elu", "ELU",
         "elu_", "selu", "SELU", "celu", "CELU", "softplus", "Softplus", "leaky_relu", "leaky_relu_", "LeakyReLU",
         "prelu", "PReLU", "rrelu", "RReLU", "hardsigmoid", "Hardsigmoid", "hardsigmoid_", "abs", "pow", "square",
         "exp", "sqrt", "threshold", "Threshold", "GLU", "glu", "Softsign", "LogSigmoid", "Softshrink", "Tanhshrink"),
        _TRAIN_WITH_RELU,
    ),
    **dict.fromkeys(
        ("LayerNorm", "layer_norm", "GroupNorm", "group_norm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
         "instance_norm", "LocalResponseNorm", "local_response_norm", "RMSNorm", "rms_norm", "normalize", "norm",
         "std", "var"),
        _NORM,
    ),
    **dict.fromkeys(
        ("mul", "matmul", "bmm", "einsum", "baddbmm", "scaled_dot_product_attention", "MultiheadAttention",
         "TransformerEncoder", "TransformerEncoderLayer", "TransformerDecoder", "TransformerDecoderLayer",
         "Transformer", "Bilinear", "bilinear", "div"),
        _PRODUCT,
    ),
    **dict.fromkeys(("max", "min", "maximum", "minimum", "amax", "amin", "topk"), _MAXIMUM),
    **dict.fromkeys(
        ("LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell", "lstm", "gru", "rnn_tanh", "rnn_relu"), _RECURRENT
    ),
    **dict.fromkeys(
        ("softmax", "log_softmax", "Softmax", "LogSoftmax", "Softmax2d", "sigmoid", "Sigmoid", "sigmoid_", "tanh",
         "Tanh", "tanh_"),
        _LAST,
    ),
    **dict.fromkeys(("argmax", "argmin"), _DECISION),
    **dict.fromkeys(("gt", "ge", "lt", "le", "eq", "ne", "where", "masked_fill", "sign"), _COMPARISON),
    **dict.fromkeys(("Embedding", "embedding"), "start the conversion behind the embedding, at its submodule"),
}  # fmt: skip


def remedy_for(operation: str) -> str:
    """The advice for an operation by its name; unknown ones get the general one."""
    return _REMEDIES.get(
        operation,
        "it is not known to be linear or an activation; express it with supported layers, or convert the "
        "submodules before and after it",
    )


def unforeseen(operation: str) -> str:
    """The advice where an operation that converts is called in a form that does not."""
    return _REMEDIES.get(
        operation, "this form of the call has no rule; use its plain form, or the layer of torch.nn that does the same"
    )
