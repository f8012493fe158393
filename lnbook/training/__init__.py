"""Train a model: initialization, batches and one loop, the same on every machine."""

from lnbook.training.batches import minibatches
from lnbook.training.decay import decay_groups
from lnbook.training.initialization import initialize_
from lnbook.training.loop import History, fit
from lnbook.training.schedules import warm_up

__all__ = ["History", "decay_groups", "fit", "initialize_", "minibatches", "warm_up"]
