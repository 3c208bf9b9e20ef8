"""Encoders: what can turn a picture or a text into features on this machine.

``list_models`` says what is known and what is missing, without reading weights;
``load`` returns an :class:`~core.encoders.base.Encoder`.
"""

from __future__ import annotations

from core.encoders.registry import describe, list_models, load

__all__ = ["describe", "list_models", "load"]
