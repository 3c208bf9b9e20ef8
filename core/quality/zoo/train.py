"""Train one network of the plan. The same specification gives the same weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from core.quality.zoo.plan import ModelSpec

if TYPE_CHECKING:
    import torch
    from torch import nn

BATCH = 96
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 0.02
CALIBRATION_BATCHES = 4


def as_tensor(images: np.ndarray, device: str) -> torch.Tensor:
    """Return uint8 ``(n, s, s, 3)`` as float32 ``(n, 3, s, s)`` in [0, 1]."""
    import torch

    x = torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).float() / 255
    return x.contiguous(memory_format=torch.channels_last).to(device)


def train(
    spec: ModelSpec, images: np.ndarray, labels: np.ndarray, *, device: str = "cpu"
) -> tuple[nn.Module, float]:
    """Return the trained network and its last loss.

    AdamW with warm-up over a tenth of the steps and cosine decay. Batch-norm statistics are
    taken anew from four batches at the end, because after a few steps their running means
    still hold the initial values.

    Parameters
    ----------
    spec : ModelSpec
        What to train.
    images, labels : ndarray, shapes (n, 32, 32, 3) uint8 and (n,) int64
        The training set.
    device : str
        "cpu" or "cuda".
    """
    import torch

    from core.quality.zoo.augment import augment
    from core.quality.zoo.nets import build
    from core.quality.zoo.objectives import build_objective

    torch.manual_seed(spec.seed)
    generator = torch.Generator().manual_seed(spec.seed)
    net = build(spec.architecture, spec.width).to(memory_format=torch.channels_last)
    width: int = net.num_features  # type: ignore[assignment]
    task = build_objective(
        spec.objective, net, architecture=spec.architecture, width=width,
        n_classes=int(labels.max()) + 1,
    ).to(device)  # fmt: skip
    task.train()
    pictures, targets = as_tensor(images, device), torch.from_numpy(labels).to(device)
    weights = [p for p in task.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    warm = max(1, spec.steps // 10)
    loss_value = float("nan")
    for step in range(spec.steps):
        rate = min((step + 1) / warm, 0.5 * (1 + np.cos(np.pi * step / spec.steps)))
        optimiser.param_groups[0]["lr"] = LEARNING_RATE * rate
        at = torch.randint(len(pictures), (BATCH,), generator=generator).to(device)
        x = pictures[at]
        loss = task(lambda x=x: augment(x, spec.augmentation, generator), targets[at], generator)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 3.0)
        optimiser.step()
        task.after_step()
        loss_value = float(loss.detach())
    _calibrate(net, pictures, generator)
    return net.eval(), loss_value


def _calibrate(net: nn.Module, pictures: torch.Tensor, generator: torch.Generator) -> None:
    """Take batch-norm statistics anew from unaugmented training pictures."""
    import torch
    from torch import nn

    from core.quality.zoo.nets import features

    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    if not norms:
        return
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over the batches
    net.train()
    with torch.no_grad():
        for _ in range(CALIBRATION_BATCHES):
            at = torch.randint(len(pictures), (2 * BATCH,), generator=generator)
            features(net, pictures[at.to(pictures.device)])


def extract(net: nn.Module, images: np.ndarray, *, device: str = "cpu") -> np.ndarray:
    """Return the features of all pictures, float32 ``(n, d)``."""
    import torch

    from core.quality.zoo.nets import features

    out = []
    with torch.inference_mode():
        for start in range(0, len(images), 256):
            out.append(features(net, as_tensor(images[start : start + 256], device)).cpu())
    return torch.cat(out).numpy()
