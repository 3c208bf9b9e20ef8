"""The emoji set: one concept in six openly licensed drawing styles, named in 28 locales."""

from __future__ import annotations

import io
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import resvg_py
from packing import (
    SIDE,
    digests,
    encode_all,
    npm_json,
    split_by_concept,
    write_images,
    write_items,
    write_manifest,
)
from PIL import Image

# The order is part of the ids: id = concept index * 6 + style index.
STYLES = {
    "twemoji": "iconify-json-twemoji-1.2.5.tgz",
    "noto": "iconify-json-noto-1.2.9.tgz",
    "openmoji": "iconify-json-openmoji-1.2.29.tgz",
    "fluent-flat": "iconify-json-fluent-emoji-flat-1.2.6.tgz",
    "fluent-hc": "iconify-json-fluent-emoji-high-contrast-1.2.6.tgz",
    "emojione": "iconify-json-emojione-1.2.3.tgz",
}
# The order is part of the ids: id = concept index * 8 + language index.
LANGUAGES = ("en", "de", "fr", "es", "ru", "zh", "ja", "pt")
LOCALES = (
    *("bn", "da", "de", "en", "en-gb", "es", "es-mx", "et", "fi", "fr", "hi", "hu", "it", "ja"),
    *("ko", "lt", "ms", "nb", "nl", "pl", "pt", "ru", "sv", "th", "uk", "vi", "zh", "zh-hant"),
)
NAMES = "emojibase-data-17.0.0.tgz"
LEFT_OUT_GROUPS = {"component", "symbols", "flags"}
N_CONCEPTS = 320
N_TAGS = 5
SEED = 20


@dataclass(frozen=True)
class Concept:
    """One emoji: what it is called in each locale, and where the Unicode order files it."""

    slug: str
    hexcode: str
    group: str
    subgroup: str
    names: dict[str, str]
    tags: dict[str, list[str]]

    def text(self, language: str) -> str:
        """Return the name and its first five tags, comma separated, repeats dropped."""
        name = self.names[language]
        tags = [tag for tag in self.tags[language] if tag.casefold() != name.casefold()]
        return ", ".join([name, *tags[:N_TAGS]])


def slug(label: str) -> str:
    """Return a label as the icon collections spell it: ``"piñata"`` is ``"pinata"``."""
    plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower().replace("'", "")).strip("-")


def build(packages: Path, demo: Path, rest: Path | None) -> dict[str, Any]:
    """Write the demo's pictures and names; the other concepts go to ``rest`` when given."""
    icons = {style: npm_json(packages / name, "icons.json") for style, name in STYLES.items()}
    known = read_concepts(packages / NAMES)
    drawn = drop_twins([c for c in known if all(find(s, c.slug) for s in icons.values())], icons)
    chosen = choose(drawn)
    demo_set = [c for c in drawn if c.slug in chosen]
    others = [c for c in drawn if c.slug not in chosen]
    report = _write_pictures(demo_set, icons, demo / "emoji", len(known), len(others))
    _write_names(demo_set, demo / "names")
    if rest is not None:
        pictures = [render(find(icons[s], c.slug), icons[s]) for c in others for s in STYLES]
        blobs, _ = encode_all(pictures)
        table = _items(others).assign(bytes=blobs, sha256=digests(blobs))
        table.to_parquet(rest, index=False)
    return report


def read_concepts(package: Path) -> list[Concept]:
    """Return every named emoji outside flags, symbols and components, in Unicode order."""
    messages = npm_json(package, "en/messages.json")
    groups = {g["order"]: g["key"] for g in messages["groups"]}
    titles = {g["order"]: g["message"] for g in messages["groups"]}
    subgroups = {g["order"]: g["key"] for g in messages["subgroups"]}
    tables = {
        locale: {entry["hexcode"]: entry for entry in npm_json(package, f"{locale}/data.json")}
        for locale in LOCALES
    }
    concepts = []
    for entry in sorted(tables["en"].values(), key=lambda e: e.get("order", -1)):
        if groups.get(entry.get("group"), "component") in LEFT_OUT_GROUPS:
            continue
        code = entry["hexcode"]
        concepts.append(
            Concept(
                slug(entry["label"]),
                code,
                titles[entry["group"]],
                subgroups[entry["subgroup"]],
                {locale: tables[locale][code]["label"] for locale in LOCALES},
                {locale: tables[locale][code].get("tags", []) for locale in LOCALES},
            )
        )
    return concepts


def find(collection: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return the icon called ``name``, following one alias."""
    aliases = collection.get("aliases", {})
    if name not in collection["icons"] and name in aliases:
        name = aliases[name]["parent"]
    return collection["icons"].get(name)


def drop_twins(concepts: list[Concept], icons: dict[str, Any]) -> list[Concept]:
    """Keep the first of two concepts that some style draws with the very same picture."""
    kept, seen = [], set()
    for concept in concepts:
        bodies = {(style, find(icons[style], concept.slug)["body"]) for style in STYLES}
        if not bodies & seen:
            kept.append(concept)
        seen |= bodies
    return kept


def choose(concepts: list[Concept]) -> set[str]:
    """Draw the demo's concepts: two or more of every subgroup, the rest in proportion."""
    rng = np.random.default_rng(SEED)
    sizes = pd.Series([c.subgroup for c in concepts]).value_counts().sort_index()
    least = np.minimum(sizes, 2)
    share = (sizes - least) * (N_CONCEPTS - least.sum()) / (sizes - least).sum()
    take = least + np.floor(share).astype(int)
    short = N_CONCEPTS - int(take.sum())
    take[(share - np.floor(share)).sort_values(kind="stable").index[-short:]] += 1
    chosen: set[str] = set()
    for subgroup, count in take.items():
        members = [c.slug for c in concepts if c.subgroup == subgroup]
        chosen.update(rng.choice(members, size=count, replace=False).tolist())
    return chosen


def render(icon: dict[str, Any], collection: dict[str, Any]) -> Image.Image:
    """Draw an icon on white, ``SIDE`` pixels square."""
    box = {
        key: icon.get(key, collection.get(key, default))
        for key, default in (("left", 0), ("top", 0), ("width", 16), ("height", 16))
    }
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{SIDE}" height="{SIDE}" '
        f'viewBox="{box["left"]} {box["top"]} {box["width"]} {box["height"]}">{icon["body"]}</svg>'
    )
    data = resvg_py.svg_to_bytes(
        svg_string=svg, width=SIDE, height=SIDE, background="#ffffff", skip_system_fonts=True
    )
    return Image.open(io.BytesIO(bytes(data))).convert("RGB")


def _items(concepts: list[Concept]) -> pd.DataFrame:
    split = split_by_concept([c.group for c in concepts], [c.subgroup for c in concepts], SEED)
    rows = [
        {
            "id": index * len(STYLES) + place,
            "sha256": "",
            "label": concept.group,
            "domain": style,
            "split": split[index],
            "caption": concept.text("en"),
            "subgroup": concept.subgroup,
            "concept": concept.slug,
            "hexcode": concept.hexcode,
        }
        | {f"name_{locale}": concept.names[locale] for locale in LOCALES}
        for index, concept in enumerate(concepts)
        for place, style in enumerate(STYLES)
    ]
    return pd.DataFrame(rows)


def _write_pictures(
    concepts: list[Concept], icons: dict[str, Any], folder: Path, n_known: int, n_others: int
) -> dict[str, Any]:
    items = _items(concepts)
    pictures = [render(find(icons[s], c.slug), icons[s]) for c in concepts for s in STYLES]
    blobs, coding = encode_all(pictures)
    write_items(items.assign(sha256=digests(blobs)), folder / "items.parquet")
    write_images(items["id"].tolist(), blobs, folder / "images.parquet")
    undrawn = n_known - len(concepts) - n_others
    manifest = {
        "name": "emoji",
        "title": "Emoji in six drawing styles",
        "kind": "image",
        "meta": {
            "source": "Twemoji, Noto Emoji, OpenMoji, Fluent Emoji (flat and high contrast), "
            "EmojiOne; names and tags from Emojibase 17.0.0",
            "licence": "CC-BY-4.0 (Twemoji, EmojiOne), Apache-2.0 (Noto), CC-BY-SA-4.0 "
            "(OpenMoji), MIT (Fluent Emoji, Emojibase)",
            "note": "320 concepts, each drawn in six styles. Domain = style, label = Unicode "
            "group, caption = English name and up to five tags. The split is by concept.",
            "left_out": [
                {
                    "what": "emoji outside the six styles",
                    "reason": "Not drawn in all six styles, or drawn like another emoji.",
                    "count": undrawn,
                },
                {
                    "what": "emoji kept for training",
                    "reason": "Drawn in all six styles, but the demo's dual encoders were "
                    "trained on them.",
                    "count": n_others,
                },
            ],
        },
    }
    write_manifest(folder / "dataset.json", manifest)
    return {"concepts": len(concepts), "rest": n_others, "coding": coding}


def _write_names(concepts: list[Concept], folder: Path) -> None:
    split = split_by_concept([c.group for c in concepts], [c.subgroup for c in concepts], SEED)
    rows = [
        {
            "id": index * len(LANGUAGES) + place,
            "sha256": "",
            "label": concept.group,
            "domain": language,
            "split": split[index],
            "caption": concept.text(language),
            "subgroup": concept.subgroup,
            "concept": concept.slug,
            "name": concept.names[language],
        }
        for index, concept in enumerate(concepts)
        for place, language in enumerate(LANGUAGES)
    ]
    write_items(pd.DataFrame(rows), folder / "items.parquet")
    manifest = {
        "name": "names",
        "title": "Emoji names in eight languages",
        "kind": "text",
        "meta": {
            "source": "Emojibase 17.0.0 (names and tags from Unicode CLDR)",
            "licence": "MIT",
            "note": "The 320 concepts of the emoji set, named in eight languages. Domain = "
            "language, label = Unicode group, text = name and up to five tags. Parallel: one "
            "concept has the same split in every language.",
            "left_out": [],
        },
    }
    write_manifest(folder / "dataset.json", manifest)
