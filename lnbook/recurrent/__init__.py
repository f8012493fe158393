"""Layer-normalized LSTMs and GRUs: readable steps and loops, and modules to use."""

from lnbook.recurrent.cell import LayerNormLSTMCell
from lnbook.recurrent.fused import fused_layer
from lnbook.recurrent.gru import LayerNormGRU, LayerNormGRUCell
from lnbook.recurrent.loop import plain_layer
from lnbook.recurrent.lstm import LayerNormLSTM
from lnbook.recurrent.parameters import parameter_shapes
from lnbook.recurrent.steps import ba_step, carried_step, lstm_step, per_gate_step

__all__ = [
    "LayerNormGRU",
    "LayerNormGRUCell",
    "LayerNormLSTM",
    "LayerNormLSTMCell",
    "ba_step",
    "carried_step",
    "fused_layer",
    "lstm_step",
    "parameter_shapes",
    "per_gate_step",
    "plain_layer",
]
