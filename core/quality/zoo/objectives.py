"""The five training objectives; each a small module that owns its head and gives a loss.

Supervised: cross entropy. SimCLR: Chen et al. 2020, arXiv 2002.05709 (NT-Xent). Barlow Twins:
Zbontar et al. 2021, arXiv 2103.03230. DINO-like: Caron et al. 2021, arXiv 2104.14294, two
global views only. Masked: He et al. 2021, arXiv 2111.06377 for the ViT (visible patches are
encoded alone); the convolutional classes fill in masked pixels instead, and are named so.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as nnf
from torch import nn

from core.errors import NotFound
from core.quality.zoo.nets import PATCH, SIDE, feature_map, features

if TYPE_CHECKING:
    from torch import Tensor

Views = Callable[[], "Tensor"]


class Objective(nn.Module):
    """A loss on a batch; ``views()`` gives a fresh augmentation of the same pictures."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def after_step(self) -> None:
        """Do what follows an optimiser step; most objectives do nothing."""


def _projector(width: int, hidden: int, out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, out)
    )


class Supervised(Objective):
    """Cross entropy on labels, smoothing .1."""

    def __init__(self, net: nn.Module, width: int, n_classes: int) -> None:
        super().__init__(net)
        self.head = nn.Linear(width, n_classes)

    def forward(self, views: Views, y: Tensor, generator: torch.Generator) -> Tensor:
        """Return the loss of one batch."""
        return nnf.cross_entropy(self.head(features(self.net, views())), y, label_smoothing=0.1)


class SimCLR(Objective):
    """NT-Xent at temperature .2."""

    def __init__(self, net: nn.Module, width: int) -> None:
        super().__init__(net)
        self.head = _projector(width, 128, 64)

    def forward(self, views: Views, y: Tensor, generator: torch.Generator) -> Tensor:
        """Return the loss of one batch."""
        z = nnf.normalize(self.head(features(self.net, torch.cat([views(), views()]))), dim=1)
        n = len(z) // 2
        logits = z @ z.T / 0.2
        logits.fill_diagonal_(float("-inf"))
        partner = torch.arange(2 * n, device=z.device).roll(n)
        return nnf.cross_entropy(logits, partner)


class BarlowTwins(Objective):
    """Cross-correlation towards the identity, off-diagonal weight .005."""

    def __init__(self, net: nn.Module, width: int) -> None:
        super().__init__(net)
        self.head = _projector(width, 128, 128)

    def forward(self, views: Views, y: Tensor, generator: torch.Generator) -> Tensor:
        """Return the loss of one batch."""
        a, b = self.head(features(self.net, torch.cat([views(), views()]))).chunk(2)
        a = (a - a.mean(0)) / (a.std(0) + 1e-5)
        b = (b - b.mean(0)) / (b.std(0) + 1e-5)
        c = a.T @ b / len(a)
        on = (c.diagonal() - 1).square().sum()
        return (on + 0.005 * (c.square().sum() - c.diagonal().square().sum())) / 16


class Dino(Objective):
    """Self-distillation: the teacher is an average of the student, centred and sharpened."""

    centre: Tensor

    def __init__(self, net: nn.Module, width: int) -> None:
        super().__init__(net)
        self.head = _projector(width, 128, 128)
        self.teacher = copy.deepcopy(nn.ModuleList([self.net, self.head])).requires_grad_(False)
        self.register_buffer("centre", torch.zeros(128))

    def forward(self, views: Views, y: Tensor, generator: torch.Generator) -> Tensor:
        """Return the loss of one batch."""
        both = torch.cat([views(), views()])
        a, b = (self.head(features(self.net, both)) / 0.1).log_softmax(1).chunk(2)
        net, head = self.teacher
        with torch.no_grad():
            raw = head(features(net, both))
            ta, tb = ((raw - self.centre) / 0.05).softmax(1).chunk(2)
            self.centre = 0.9 * self.centre + 0.1 * raw.mean(0)
        return -0.5 * ((tb * a).sum(1) + (ta * b).sum(1)).mean()

    def after_step(self) -> None:
        """Move the teacher towards the student, momentum .97."""
        ours = [*self.net.parameters(), *self.head.parameters()]
        with torch.no_grad():
            for theirs, mine in zip(self.teacher.parameters(), ours, strict=True):
                theirs.lerp_(mine, 0.03)


def _mask(n: int, share: float, generator: torch.Generator) -> Tensor:
    """Return ``(n, p)``: which patches are hidden, the same number in each picture."""
    places = (SIDE // PATCH) ** 2
    order = torch.rand(n, places, generator=generator).argsort(1)
    return order < round(share * places)


def _patches(x: Tensor) -> Tensor:
    """Return ``(n, p, 3 * PATCH * PATCH)``."""
    return nnf.unfold(x, PATCH, stride=PATCH).transpose(1, 2)


class MaskedPatches(Objective):
    """ViT: encode 6 of 16 patches, predict the pixels of the others by a one-block decoder."""

    def __init__(self, net: nn.Module, width: int) -> None:
        super().__init__(net)
        from timm.models.vision_transformer import Block

        places = (SIDE // PATCH) ** 2
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.place = nn.Parameter(0.02 * torch.randn(1, places, width))
        self.block = Block(width, 4)
        self.head = nn.Linear(width, 3 * PATCH * PATCH)

    def forward(self, views: Views, y: Tensor, generator: torch.Generator) -> Tensor:
        """Return the mean squared error of hidden pixels."""
        x = views()
        hidden = _mask(len(x), 0.625, generator).to(x.device)
        seen = (~hidden).nonzero()[:, 1].view(len(x), -1)
        net = self.net
        tokens = net._pos_embed(net.patch_embed(x))  # type: ignore[operator]
        width = tokens.shape[-1]
        kept = tokens[:, 1:].gather(1, seen[..., None].expand(-1, -1, width))
        out = net.norm(net.blocks(torch.cat([tokens[:, :1], kept], 1)))  # type: ignore[operator]
        full = self.token.expand(len(x), hidden.shape[1], width).clone()
        full = full.scatter(1, seen[..., None].expand(-1, -1, width), out[:, 1:])
        # The class token joins the decoder, so that it is trained to know the picture.
        full = self.block(torch.cat([out[:, :1], full + self.place], 1))[:, 1:]
        wrong = (self.head(full) - _patches(x)).square().mean(2)
        return wrong[hidden].mean() * 10


class MaskedPixels(Objective):
    """Convolutional classes: hidden patches are grey, a linear decoder predicts their pixels."""

    def __init__(self, net: nn.Module, width: int) -> None:
        super().__init__(net)
        with torch.no_grad():
            size = feature_map(net.eval(), torch.zeros(1, 3, SIDE, SIDE)).numel()
        net.train()
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(size, 3 * SIDE * SIDE))

    def forward(self, views: Views, y: Tensor, generator: torch.Generator) -> Tensor:
        """Return the mean squared error of hidden pixels."""
        x = views()
        side = SIDE // PATCH
        hidden = _mask(len(x), 0.625, generator).view(-1, 1, side, side).to(x)
        hidden = nnf.interpolate(hidden, scale_factor=PATCH)
        out = self.head(feature_map(self.net, x * (1 - hidden) + 0.5 * hidden)).view_as(x)
        return ((out - x).square() * hidden).sum() / (hidden.sum() * 3) * 10


def build_objective(
    name: str, net: nn.Module, *, architecture: str, width: int, n_classes: int
) -> Objective:
    """Return the objective with its head.

    Raises
    ------
    NotFound
        The objective is not one of the five.
    """
    if name == "supervised":
        return Supervised(net, width, n_classes)
    if name == "mae":
        return (MaskedPatches if architecture == "ViT" else MaskedPixels)(net, width)
    kinds = {"simclr": SimCLR, "barlow": BarlowTwins, "dino": Dino}
    if name not in kinds:
        raise NotFound(f"There is no objective {name!r}.", "See core.quality.zoo.plan.OBJECTIVES.")
    return kinds[name](net, width)
