"""Every differentiable part of lnbook as a function of tensors, to try the same tools on each.

A case for a function is a call that takes only its tensors. A case for a class is a module; its
parameters also count as the case's tensors. Each case lists in `refuses` the tools that it
rejects with a clear error.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from lnbook import functional, layers, recurrent, transformer
from lnbook.recurrent import parameter_shapes

Function = Callable[..., Any]
Refusal = tuple[type[Exception], str]

VARIANTS = ("ba", "per-gate", "carried", "none")
IMPLEMENTATIONS = ("auto", "native", "fused", "plain")
EPS = 0.1  # large, so that its position in the formula matters

# PyTorch's fused attention has only first derivatives, in reverse mode; with `need_weights`, which
# doesn't use it, all derivatives exist.
FUSED: Mapping[str, Refusal] = {
    "gradgradcheck": (RuntimeError, "not implemented"),
    "jvp": (RuntimeError, "forward AD"),
}
# The module updates its running statistics in place, as PyTorch's does.
TRACKED: Mapping[str, Refusal] = dict.fromkeys(("vjp", "jvp", "vmap"), (RuntimeError, "in-?place"))


@dataclass(frozen=True)
class Case:
    """One way to call one public function or class.

    Attributes:
        of: the public function or class.
        name: its name and variant, for pytest's output.
        inputs: the shapes of the tensors that the call takes.
        call: the function, called with these tensors.
        make: used instead of `call`; makes the module to call, given a dtype and a device.
        options: the other arguments of a module's call, by name.
        refuses: the tools that it rejects, by name, and the error that it raises for each.
    """

    of: Any
    name: str
    inputs: tuple[tuple[int, ...], ...]
    call: Function | None = None
    make: Callable[..., nn.Module] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    refuses: Mapping[str, Refusal] = field(default_factory=dict)

    def tensors(self, dtype: torch.dtype = torch.float64, seed: int = 1) -> tuple[Tensor, ...]:
        """Draw the inputs."""
        rng = np.random.default_rng(seed)
        return tuple(torch.tensor(rng.standard_normal(shape)).to(dtype) for shape in self.inputs)

    def module(self, dtype: torch.dtype = torch.float64, seed: int = 0) -> nn.Module:
        """Make the module with random parameters: gains of 1 and biases of 0 can hide mistakes."""
        assert self.make is not None
        module, rng = self.make(dtype=dtype), np.random.default_rng(seed)
        with torch.no_grad():
            for parameter in module.parameters():
                values = 0.5 * rng.standard_normal(tuple(parameter.shape))
                parameter.copy_(torch.tensor(values))
        return module

    def problem(self, dtype: torch.dtype = torch.float64) -> tuple[Function, tuple[Tensor, ...]]:
        """Return a function of only tensors, and tensors for it: inputs, then parameters.

        The function returns a flat tuple of tensors.
        """
        if self.call is not None:
            return _flattened(self.call), self.tensors(dtype)
        module, count = self.module(dtype), len(self.inputs)
        names = [name for name, _ in module.named_parameters()]

        def call(*tensors: Tensor) -> Any:
            parameters = dict(zip(names, tensors[count:], strict=True))
            return functional_call(module, parameters, tensors[:count], dict(self.options))

        values = (parameter.detach().clone() for parameter in module.parameters())
        return _flattened(call), (*self.tensors(dtype), *values)


def flat(results: Any) -> tuple[Tensor, ...]:
    """Return the tensors in nested tuples and lists, in order."""
    if isinstance(results, (tuple, list)):
        return tuple(tensor for result in results for tensor in flat(result))
    return (results,)


def _flattened(call: Function) -> Function:
    return lambda *tensors: flat(call(*tensors))


def _norms() -> list[Case]:
    f, rows, vector = functional, (3, 4), (4,)

    def layer_norm(form: Function) -> Function:
        return lambda x, w, b: form(x, (4,), w, b, EPS)

    def rms_norm(form: Function) -> Function:
        return lambda x, w: form(x, (4,), w, EPS)

    def backward(form: Function) -> Function:
        return lambda g, x, w: form(g, x, (4,), w, EPS)

    inputs = (rows, vector, vector)
    return [
        Case(f.layer_norm, "layer_norm", inputs, layer_norm(f.layer_norm)),
        Case(
            f.LayerNormFunction,
            "LayerNormFunction",
            inputs,
            layer_norm(f.LayerNormFunction.apply),
        ),
        Case(
            f.BlockedLayerNormFunction,
            "BlockedLayerNormFunction",
            inputs,
            layer_norm(f.BlockedLayerNormFunction.apply),
        ),
        Case(f.rms_norm, "rms_norm", inputs[:2], rms_norm(f.rms_norm)),
        Case(f.RMSNormFunction, "RMSNormFunction", inputs[:2], rms_norm(f.RMSNormFunction.apply)),
        Case(
            f.layer_norm_backward,
            "layer_norm_backward",
            (rows, *inputs[:2]),
            backward(f.layer_norm_backward),
        ),
        Case(
            f.rms_norm_backward,
            "rms_norm_backward",
            (rows, *inputs[:2]),
            backward(f.rms_norm_backward),
        ),
        Case(f.dynamic_tanh, "dynamic_tanh", (rows, (1,), vector, vector), f.dynamic_tanh),
    ]


def _norms_of_channels() -> list[Case]:
    f, inputs = functional, ((3, 4, 2), (4,), (4,))
    return [
        Case(
            f.batch_norm,
            "batch_norm-training",
            inputs,
            lambda x, w, b: f.batch_norm(x, None, None, w, b, True, eps=EPS),
        ),
        Case(
            f.batch_norm,
            "batch_norm-evaluation",
            (*inputs, (4,), (4,)),
            lambda x, w, b, mean, root: f.batch_norm(x, mean, root.square() + 0.5, w, b, eps=EPS),
        ),
        Case(
            f.instance_norm,
            "instance_norm",
            inputs,
            lambda x, w, b: f.instance_norm(x, None, None, w, b, eps=EPS),
        ),
        Case(
            f.group_norm,
            "group_norm",
            inputs,
            lambda x, w, b: f.group_norm(x, 2, w, b, EPS),
        ),
    ]


def _layers() -> list[Case]:
    one, two = layers.BatchNorm1d, layers.BatchNorm2d
    untracked = {"track_running_stats": False}
    cases = [
        Case(one, "BatchNorm1d", ((3, 4, 2),), make=partial(one, 4), refuses=TRACKED),
        Case(one, "BatchNorm1d-untracked", ((3, 4, 2),), make=partial(one, 4, **untracked)),
        Case(two, "BatchNorm2d", ((2, 3, 2, 2),), make=partial(two, 3), refuses=TRACKED),
        Case(
            two,
            "BatchNorm2d-evaluation",
            ((2, 3, 2, 2),),
            make=lambda **where: two(3, **where).eval(),
        ),
        *(
            Case(
                layers.AdaLayerNorm,
                f"AdaLayerNorm-{gate}",
                ((2, 3, 4), condition),
                make=partial(layers.AdaLayerNorm, 4, 5, EPS, gate=gate),
            )
            for gate, condition in ((False, (2, 5)), (True, (2, 3, 5)))
        ),
        Case(layers.DyT, "DyT", ((3, 4),), make=partial(layers.DyT, 4)),
    ]
    for kind, shape, sizes in (
        (layers.LayerNorm, (3, 2, 4), (2, 4)),
        (layers.RMSNorm, (3, 2, 4), (2, 4)),
        (layers.LayerNorm2d, (2, 3, 2, 2), 3),
    ):
        cases += [
            Case(
                kind,
                f"{kind.__name__}-{implementation}",
                (shape,),
                make=partial(kind, sizes, EPS, implementation=implementation),
            )
            for implementation in IMPLEMENTATIONS
        ]
    return cases


def _lstm_functions() -> list[Case]:
    r = recurrent
    steps = (r.ba_step, r.per_gate_step, r.carried_step, r.lstm_step)
    cases = []
    for variant, step in zip(VARIANTS, steps, strict=True):
        names = parameter_shapes(variant, 3, 2, True)
        inputs = ((2, 3), (2, 2), (2, 2), *names.values())
        cases.append(Case(step, step.__name__, inputs, partial(_step, step, tuple(names))))
        inputs = ((3, 3), *inputs[1:])
        cases += [
            Case(
                layer,
                f"{layer.__name__}-{variant}",
                inputs,
                partial(_layer, layer, variant, tuple(names)),
            )
            for layer in (r.plain_layer, r.fused_layer)
        ]
    return cases


def _step(step: Function, names: tuple[str, ...], *tensors: Tensor) -> Any:
    return step(*tensors[:3], dict(zip(names, tensors[3:], strict=True)), EPS)


def _layer(layer: Function, variant: str, names: tuple[str, ...], *tensors: Tensor) -> Any:
    x, h, c, *others = tensors
    return layer(variant, x, [2, 1], h, c, dict(zip(names, others, strict=True)), EPS)


def _lstm_modules() -> list[Case]:
    cell, lstm = recurrent.LayerNormLSTMCell, recurrent.LayerNormLSTM
    cases = [
        Case(
            cell,
            f"LayerNormLSTMCell-{variant}",
            ((2, 3),),
            make=partial(cell, 3, 2, variant=variant, eps=EPS),
        )
        for variant in VARIANTS
    ]
    for implementation in ("fused", "plain"):
        make = partial(lstm, 3, 2, bidirectional=True, implementation=implementation, eps=EPS)
        cases.append(Case(lstm, f"LayerNormLSTM-{implementation}", ((2, 2, 3),), make=make))
    cell, gru = recurrent.LayerNormGRUCell, recurrent.LayerNormGRU
    cases.append(
        Case(cell, "LayerNormGRUCell", ((2, 3), (2, 2)), make=partial(cell, 3, 2, eps=EPS))
    )
    make = partial(gru, 3, 2, bidirectional=True, eps=EPS)
    cases.append(Case(gru, "LayerNormGRU", ((2, 2, 3), (2, 2, 2)), make=make))
    return cases


def _transformers() -> list[Case]:
    t, options = transformer, {"dim_feedforward": 3, "dropout": 0.0, "activation": "gelu"}
    options["layer_norm_eps"] = EPS
    makers: dict[Any, Callable[..., nn.Module]] = {
        t.SelfAttention: partial(t.SelfAttention, 4, 2),
        t.PostLNBlock: partial(t.PostLNBlock, 4, 2, **options),
        t.PreLNBlock: partial(t.PreLNBlock, 4, 2, **options),
        t.PeriLNBlock: partial(t.PeriLNBlock, 4, 2, **options),
        t.DeepNormBlock: partial(t.DeepNormBlock, 4, 2, num_layers=3, **options),
        t.TransformerEncoder: partial(t.TransformerEncoder, t.PreLNBlock, 2, 4, 2, **options),
    }
    cases = [
        Case(
            kind,
            f"{kind.__name__}-{'plain' if need_weights else 'fused'}",
            ((2, 3, 4),),
            make=make,
            options={"is_causal": True, "need_weights": need_weights},
            refuses={} if need_weights else FUSED,
        )
        for kind, make in makers.items()
        for need_weights in (False, True)
    ]
    cases.append(
        Case(
            t.CausalLanguageModel,
            "CausalLanguageModel",
            (),
            make=partial(t.CausalLanguageModel, 5, 3, 4, 2, 1, t.PostLNBlock, **options),
            options={"tokens": torch.tensor([[0, 4, 1], [2, 2, 3]])},
            refuses=FUSED,
        )
    )
    attention = t.dot_product_attention
    cases.append(
        Case(attention, "dot_product_attention", ((2, 3, 4), (2, 5, 4), (2, 5, 2)), attention)
    )
    return cases


CASES = (
    *_norms(),
    *_norms_of_channels(),
    *_layers(),
    *_lstm_functions(),
    *_lstm_modules(),
    *_transformers(),
)

# Public names that aren't differentiable computations, and why.
NOT_APPLICABLE = {
    "FLOATING_DTYPES": "a constant",
    "HALF_DTYPES": "a constant",
    "fold_affine_": "changes the weights of a model, without derivatives",
    "fold_centering": "makes weights for a model, without derivatives",
    "parameter_shapes": "names and shapes alone",
    "BlockOptions": "a type",
    "TransformerBlock": "abstract; its four subclasses are cases",
    "block_from_torch": "makes a block of a case",
    "deepnorm_init_": "draws starting values",
    "xavier_init_": "draws starting values",
}
