"""The known bugs: mistakes seen in real code, planted where chapters use the formula most."""

from __future__ import annotations

from bookbuild.bugs.bug import Bug

REFERENCE = "lnbook/reference/layer_norm.py"
REFERENCE_LSTM = "lnbook/reference/lstm.py"
PLAIN = "lnbook/functional/layer_norm.py"
FAST = "lnbook/functional/layer_norm_function.py"
GPU = "lnbook/kernels/gpu/layer_norm.py"
LAYER = "lnbook/layers/layer_norm.py"
EVALUATION = "lnbook/chapters/batch_norm/train_and_eval/experiments.py"
STEPS = "lnbook/recurrent/steps.py"
FAST_LSTM = "lnbook/recurrent/_forward.py"
BLOCKS = "lnbook/transformer/blocks.py"
ENCODER = "lnbook/transformer/encoder.py"

# Correct lines that more than one bug changes.
MEAN = "mean = x.mean(axis=features, keepdims=True)\n"
VARIANCE = "variance = ((x - mean) ** 2).mean(axis=features, keepdims=True)\n"
RSTD = "rstd = 1.0 / np.sqrt(variance + eps)\n"
SCALED = "y = normalized * gamma + beta\n"
AXES = "x, shape, gamma, beta, eps = given\n    features = tuple(range(-len(shape), 0))\n"
PLAIN_VARIANCE = "variance = centered.square().sum(features, keepdim=True) / size\n"
PLAIN_RSTD = "rstd = 1 / torch.sqrt(variance + eps)\n"
GRAD_X = "grad_x = rstd * (g - mean_g - xhat * mean_g_xhat)\n"
MEANS_OF_G = (
    "mean_g = g.mean(axis=features, keepdims=True)\n"
    "    mean_g_xhat = (g * xhat).mean(axis=features, keepdims=True)\n"
)
FAST_GRAD = "grad = centered.mul_(minus_mean_g_xhat).add_(minus_means(grad_output, weight))\n"

FORWARD = (
    Bug("eps outside the root", REFERENCE, RSTD, "rstd = 1.0 / (np.sqrt(variance) + eps)\n"),
    Bug("eps outside the root", PLAIN, PLAIN_RSTD, "rstd = 1 / (torch.sqrt(variance) + eps)\n"),
    Bug(
        "unbiased variance",
        REFERENCE,
        VARIANCE,
        "variance = x.var(axis=features, keepdims=True, ddof=1)\n",
    ),
    Bug(
        "unbiased variance",
        PLAIN,
        PLAIN_VARIANCE,
        "variance = centered.square().sum(features, keepdim=True) / (size - 1)\n",
    ),
    Bug(
        "one-pass variance",
        REFERENCE,
        VARIANCE,
        "variance = (x**2).mean(axis=features, keepdims=True) - mean**2\n",
    ),
    Bug(
        "one-pass variance",
        PLAIN,
        PLAIN_VARIANCE,
        "variance = x.square().sum(features, keepdim=True) / size - mean.square()\n",
    ),
    Bug("affine ignored", REFERENCE, SCALED, "y = normalized\n"),
    Bug(
        "affine ignored",
        LAYER,
        "return native(*given)\n",
        "return native(input, self.normalized_shape, None, None, self.eps)\n",
    ),
    Bug(
        "(xhat + beta) * gamma",
        REFERENCE,
        SCALED,
        "y = (normalized + beta) * gamma\n",
    ),
    Bug(
        "gamma sized by batch",
        REFERENCE,
        SCALED,
        "y = normalized * np.resize(gamma, mean.shape) + beta\n",
    ),
    Bug("**2 for **0.5", REFERENCE, RSTD, "rstd = 1.0 / (variance + eps) ** 2\n"),
    Bug(
        "std for var",
        REFERENCE,
        VARIANCE,
        "variance = np.sqrt(((x - mean) ** 2).mean(axis=features, keepdims=True))\n",
    ),
    Bug("wrong axis", REFERENCE, AXES, AXES.replace("-len(shape), 0", "len(shape)")),
    Bug(
        "normalizing over (L, D)",
        REFERENCE,
        AXES,
        AXES.replace("-len(shape)", "-max(len(shape), x.ndim - 1)"),
    ),
    Bug(
        "statistics in float16",
        REFERENCE,
        f"{MEAN}    {VARIANCE}",
        "half = x.astype(np.float16)\n"
        "    mean = half.mean(axis=features, keepdims=True)\n"
        "    variance = half.var(axis=features, keepdims=True)\n",
    ),
    Bug(
        "statistics in float16",
        PLAIN,
        "x = input.to(computing_dtype(input.dtype)).contiguous()\n",
        "x = input.contiguous()\n",
    ),
    Bug(
        "batch statistics reused at evaluation",
        EVALUATION,
        "classes = _classes(copy.deepcopy(model).train(training), ",
        "classes = _classes(copy.deepcopy(model).train(), ",
    ),
)

GPU_KERNELS = (
    Bug(
        "mask forgotten after centering",
        GPU,
        "values = tl.where(inside, values - rest, 0.0)\n",
        "values = values - rest - center * (1 - inside.to(tl.float32))\n",
    ),
    Bug(
        "rows of other programs forgotten",
        GPU,
        "    if parts is not None:\n            grad_weight += dy * xhat\n",
        "    if parts is not None:\n            grad_weight = dy * xhat\n",
    ),
)

BACKWARD = (
    Bug(
        "dgamma summed over features",
        REFERENCE,
        "grad_weight = (grad_output * xhat).sum(axis=leading)\n",
        "grad_weight = (grad_output * xhat).sum(axis=features)\n",
    ),
    Bug("no mean term in dL/dx", REFERENCE, GRAD_X, GRAD_X.replace(" - mean_g -", " -")),
    Bug("no mean term in dL/dx", FAST, FAST_GRAD, "grad = centered.mul_(minus_mean_g_xhat)\n"),
    Bug("no xhat term in dL/dx", REFERENCE, GRAD_X, GRAD_X.replace(" - xhat * mean_g_xhat", "")),
    Bug(
        "no xhat term in dL/dx",
        FAST,
        FAST_GRAD,
        "grad = centered.zero_().add_(minus_means(grad_output, weight))\n",
    ),
    Bug("1/H forgotten in dL/dx", REFERENCE, MEANS_OF_G, MEANS_OF_G.replace(".mean(", ".sum(")),
    Bug(
        "r without eps in the backward",
        REFERENCE,
        "xhat, rstd = forward.normalized, forward.rstd\n    features = tuple(",
        "xhat, rstd = forward.normalized, 1.0 / np.sqrt(forward.variance)\n    features = tuple(",
    ),
)

LSTM = (
    Bug(
        "carrying LN(c)",
        STEPS,
        'h = torch.sigmoid(o) * torch.tanh(_norm(c, parameters, "norm_c", eps))\n'
        "    return h, c\n\n\n@checks_arguments",
        'c = _norm(c, parameters, "norm_c", eps)\n    h = torch.sigmoid(o) * torch.tanh(c)\n'
        "    return h, c\n\n\n@checks_arguments",
    ),
    Bug(
        "carrying LN(c)",
        FAST_LSTM,
        'return self.variant == "carried"\n',
        'return self.variant in ("ba", "carried")\n',
    ),
    Bug(
        "carrying LN(c)",
        REFERENCE_LSTM,
        'h = _sigmoid(o) * np.tanh(_norm(c, p, "norm_c", eps))\n'
        "    return h, c\n\n\ndef carried_step(",
        'c = _norm(c, p, "norm_c", eps)\n    h = _sigmoid(o) * np.tanh(c)\n'
        "    return h, c\n\n\ndef carried_step(",
    ),
    Bug(
        "one norm shared by gates",
        STEPS,
        'weights = parameters["norm_gates_weight"].chunk(4)\n'
        '    bias = parameters.get("norm_gates_bias")\n'
        "    biases = [None] * 4 if bias is None else bias.chunk(4)\n",
        'weights = parameters["norm_gates_weight"].chunk(4)[:1] * 4\n'
        '    bias = parameters.get("norm_gates_bias")\n'
        "    biases = [None] * 4 if bias is None else bias.chunk(4)[:1] * 4\n",
    ),
    Bug(
        "one norm shared by gates",
        FAST_LSTM,
        "total.view(-1, *shape), shape, None, None, plan.eps\n",
        "total, total.shape[1:], None, None, plan.eps\n",
    ),
    Bug(
        "one norm shared by gates",
        REFERENCE_LSTM,
        'gains = np.split(p["norm_gates_weight"], 4)\n'
        '    biases = np.split(p["norm_gates_bias"], 4)\n',
        'gains = np.split(p["norm_gates_weight"], 4)[:1] * 4\n'
        '    biases = np.split(p["norm_gates_bias"], 4)[:1] * 4\n',
    ),
)

TRANSFORMER = (
    Bug(
        "norm on the residual path",
        BLOCKS,
        "x = x + self.dropout1(attention(self.norm1(x)))\n"
        "        return x + self.dropout2(self.feed_forward(self.norm2(x)))\n",
        "x = self.norm1(x) + self.dropout1(attention(x))\n"
        "        return self.norm2(x) + self.dropout2(self.feed_forward(x))\n",
    ),
    Bug(
        "no final norm in Pre-LN",
        ENCODER,
        "self.norm = _final_norm(d_model, options) if final_norm else None\n",
        "self.norm = None\n",
    ),
)

BUGS = FORWARD + BACKWARD + GPU_KERNELS + LSTM + TRANSFORMER
