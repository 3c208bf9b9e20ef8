"""How numbers and terms are written: one place, so that every page says them alike."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable

MISSING = "n/a"

# One line a term; shown as the tooltip of every control and heading that uses the word.
GLOSSARY: dict[str, str] = {
    "dataset": "Items of one kind (pictures or texts) with label, domain, split and caption.",
    "features": "What an encoder gives for a sample at a layer: one row of numbers an item.",
    "encoder": "A model that maps samples to features; it has a family and an objective.",
    "model": "A model that maps samples to features; it has a family and an objective.",
    "layer": "One state of the residual stream, or one stage of a convolutional network.",
    "domain": "Where samples come from: a drawing style, a language, a camera, a site.",
    "source": "A domain whose samples could be added to help the target.",
    "target domain": "The domain the head must work on.",
    "blend": "A subset of the sources, used together.",
    "within": "Pairs whose anchor and partner come from the same domain.",
    "cross": "Pairs whose partner comes from another domain than the anchor.",
    "theta": "Angle between the layer steps of an anchor and of its partner, in radians.",
    "d": "Relative distance of anchor and partner at a layer.",
    "target": "A: the representation whose own structure is looked for.",
    "reference": "B: the representation that should not have that structure.",
    "direction": "A weighting of samples that is coherent in A and not in B.",
    "cluster": "The samples a direction ranks first.",
    "epsilon": "How much coherence B may have along a direction.",
    "multiplier": "The price of the constraint: lambda of the dual problem.",
    "gap": "Dual bound minus objective: how far from the optimum the answer can be at most.",
    "group size": "About how many near-identical samples make a group: KODA's scale.",
    "anchors": "Landmark samples; features are written as similarities to them.",
    "PARAM anchors": "Anchors that are convex mixtures of samples, learnt for the spaces.",
    "WIP": "Whitened inner product: a similarity that no linear map of the space changes.",
    "stitching accuracy": "Head trained on encoder i, tested on encoder j, without retraining.",
    "intrinsic dimension": "TwoNN's estimate of how many directions the data really fill.",
    "null": "What the number would be if there were nothing to find: the grey band.",
    "PCA": "The two directions of largest variance: linear, at once, same picture each time.",
    "UMAP": "A map that keeps neighbours together; distances between far groups mean little.",
    "seed": "Where the random numbers start; the same seed gives the same result.",
}


def tip(term: str) -> str | None:
    """Return the one-line tooltip of a glossary term, or None."""
    return GLOSSARY.get(term)


def known(value: float | None) -> bool:
    """Say whether there is a finite number to show."""
    return value is not None and math.isfinite(float(value))


def number(value: float | int | None, digits: int = 3) -> str:
    """Write a number with ``digits`` significant digits and thousands separators.

    Examples
    --------
    >>> number(12345.678), number(0.0412345), number(None), number(2000)
    ('12,346', '0.0412', 'n/a', '2,000')
    """
    if value is None or not known(value):
        return MISSING
    if isinstance(value, int):
        return f"{value:,}"
    value = float(value)
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    if abs(value) < 1e-4:
        return f"{value:.{digits - 1}e}"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:.{places}f}"


def count(value: int | float | None) -> str:
    """Write a count: whole, with thousands separators."""
    return f"{round(float(value)):,}" if value is not None and known(value) else MISSING


def percent(fraction: float | None) -> str:
    """Write a fraction in [0, 1] as a percentage with one decimal.

    Examples
    --------
    >>> percent(0.9712)
    '97.1 %'
    """
    return f"{100 * float(fraction):.1f} %" if fraction is not None and known(fraction) else MISSING


def plus_minus(value: float | None, sd: float | None, *, as_percent: bool = False) -> str:
    """Write value ± one standard deviation, both to the same decimal place.

    Examples
    --------
    >>> plus_minus(0.1634, 0.0213), plus_minus(0.971, 0.012, as_percent=True)
    ('0.163 ± 0.021', '97.1 ± 1.2 %')
    """
    if value is None or not known(value):
        return MISSING
    if as_percent:
        spread = f" ± {100 * sd:.1f}" if sd is not None and known(sd) else ""
        return f"{100 * value:.1f}{spread} %"
    text = number(value)
    if sd is None or not known(sd):
        return text
    places = len(text.partition(".")[2]) if "e" not in text else 3
    return f"{text} ± {sd:.{places}f}"


def interval(low: float | None, high: float | None) -> str:
    """Write an interval in square brackets.

    Examples
    --------
    >>> interval(0.2, 0.41)
    '[0.200, 0.410]'
    """
    if low is None or high is None or not (known(low) and known(high)):
        return MISSING
    return f"[{number(low)}, {number(high)}]"


def p_value(p: float | None) -> str:
    """Write a p value.

    Examples
    --------
    >>> p_value(0.00004), p_value(0.03456)
    ('< 0.001', '0.035')
    """
    if p is None or not known(p):
        return MISSING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def seconds(value: float | None) -> str:
    """Write a duration a person reads.

    Examples
    --------
    >>> seconds(0.31), seconds(42), seconds(3725)
    ('0.3 s', '42 s', '1 h 2 min')
    """
    if value is None or not known(value):
        return MISSING
    if value < 10:
        return f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    if value < 3600:
        return f"{value / 60:.0f} min"
    return f"{int(value // 3600)} h {int(value % 3600 // 60)} min"


def listed(words: Iterable[str], *, most: int = 6) -> str:
    """Join words with commas and "and"; past ``most`` say how many more there are.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    items = [str(word) for word in words]
    if len(items) > most:
        return f"{', '.join(items[:most])} and {len(items) - most} more"
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def plural(n: int, one: str, many: str = "") -> str:
    """Write a count with its noun.

    Examples
    --------
    >>> plural(1, "picture"), plural(1920, "picture"), plural(2, "class", "classes")
    ('1 picture', '1,920 pictures', '2 classes')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def as_text(text: object) -> str:
    r"""Escape text for Markdown: other people's words are shown as they are, no link, no formula.

    What stands between two backquotes is code and stays so.

    Examples
    --------
    >>> print(as_text("[x](http://y) $a$ `a_b`"))
    \[x\](http://y) \$a\$ `a_b`
    """
    parts = re.split(r"(`[^`\n]*`)", str(text))
    marks = {ord(mark): f"\\{mark}" for mark in "\\`*_[]<>$#~|"}
    return "".join(part if at % 2 else part.translate(marks) for at, part in enumerate(parts))


def safe(text: object) -> str:
    """Escape text for HTML: captions, labels and file names are other people's data."""
    return html.escape(str(text), quote=True)
