"""Turn off autocast in loops, since it would change the dtype in the middle of a step."""

from contextlib import AbstractContextManager, nullcontext

import torch

__all__ = ["no_autocast"]


def no_autocast(device: torch.device) -> AbstractContextManager[None]:
    """Return a context without autocast, which not every device supports (`meta` doesn't)."""
    if torch.amp.is_autocast_available(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()
