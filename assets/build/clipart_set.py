"""The clip art set: public-domain drawings, labelled by folder, captioned by file name."""

from __future__ import annotations

import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd
from packing import (
    SIDE,
    deb_files,
    digests,
    encode_all,
    split_by_concept,
    write_images,
    write_items,
    write_manifest,
)
from PIL import Image

PACKAGE = "openclipart-png_1%3a0.18+dfsg-19_all.deb"
PREFIX = "usr/share/openclipart/png/"
N_PICTURES = 1500
PER_LABEL = 120
SEED = 20
MIN_INK = 0.025  # mean darkness; below it hair lines vanish when a thumbnail is made
NOISE_WORDS = {"md", "aj", "svg", "icon", "v0", "clothing", "with", "and"}

# Label by folder; the longest matching folder decides, folders not named are left out.
LABELS = {
    "animals": "animals",
    "buildings": "buildings and furniture",
    "buildings/furniture": "buildings and furniture",
    "computer/hardware": "computers and electronics",
    "computer/connectors": "computers and electronics",
    "electronics": "computers and electronics",
    "computer/icons/flat-theme/action": "interface icons",
    "computer/icons/lemon-theme": "interface icons",
    "computer/icons/etiquette-theme": "interface icons",
    "food": "food and drink",
    "geography": "maps and globes",
    "office": "office and school",
    "education": "office and school",
    "people": "people",
    "plants": "plants",
    "recreation/holiday": "celebrations",
    "recreation/party": "celebrations",
    "recreation/music": "music",
    "recreation/sports": "sports and games",
    "recreation/games": "sports and games",
    "recreation/toys": "sports and games",
    "shapes": "shapes and arrows",
    "signs_and_symbols": "signs and symbols",
    "tools": "tools",
    "transportation/roadsigns": "road signs",
    "transportation/aiga-symbols": "road signs",
    "transportation/vehicles": "vehicles",
    "transportation/boating": "vehicles",
}
# National and historic flags, weapons, religion, application logos, and long runs of
# near-identical drawings have no place in a demo everyone opens.
LEFT_OUT_FOLDERS = (
    "computer/icons/etiquette-theme/apps",
    "computer/icons/lemon-theme/apps",
    "people/clothing/pantyhose",
    "recreation/games/cards",
    "recreation/religion",
    "shapes/stars",
    "signs_and_symbols/flags",
    "signs_and_symbols/led",
    "tools/weapons",
)
LEFT_OUT_WORDS = re.compile(
    r"sexy|stripper|nude|naked|pimp|chav|gallows|gun|ak47|m16|bomb|tank|missile|military|hummer"
    r"|cannabis|luther_king|einstein|coltrane|self_portrait|beckham|female_rollandin|firefox"
    r"|mozilla|emule|skype|yahoo|knievel|blender|inkscape|cross_hand|simple_cross|bible|church"
    r"|flag|swastika|nazi|lenin|elder_sign|icthus|bullet|vgcats|domo_kun|gender|self_portrait"
    r"|signorina|pregnan|silouettedonna|turban|jacob_leisler|empty_tomb|tux|anglica|incazzato|babe|human_humain"
    r"|stylized_yoga|lucchetto|animals/bugs/c_roll|basque|argentina|canada_new|capitol|gpride|toilet"
)
# File names end in their author's name, cut at 24 characters. Everything from the first of
# these on is the author, not the picture.
AUTHORS = re.compile(
    r"[_-](?:a\.?j\.?_ash|abicl|afief|aj_ash|alejandr|aladi|alex_|alexander|ali_hus|amos|andrea_|"
    r"andreas_|angelo|anita|anonym|anthony|anton_|arago|arc_|arch_|archi_|archit|ar_\d|astrid|aubanel|"
    r"benji|benj_|bram_|brice|c_rolland|carlos|cedric|celso|chaspo|charles|chris_|christian|"
    r"christoph|clemente|clem|cli_|costea|czara|dan_ger|dan_\d|daniel|danny|darek|darkon|dave_|"
    r"davek|david|davide|denco|dennis|didier|dirk|don_|donna_i|dudziak|durex|einar|enrique|erich|erik|"
    r"ernst|erwan|etienne|f_r|fco|fearzip|felipe|ff77|fra\d|franc|frances|frederic|frolland|frouke|"
    r"fudriot|g__|gabriel|gabrielle|ganso|gera|gerald|geraint|ghuul|gino|giul|gmv|goneri|graig|"
    r"guid_|guillaume|guziec|guzie|hans_|hardi|hash_0|http|igor|indana|israel|jaim|jakob|james|jamin|"
    r"jarno|jasper|jean|jeff|jerry|jessica|joel|joerg|john_|johnatan|jon_|jonada|jonathan|jordan|"
    r"jorkon|josu|juergen|julian|juliane|jure|jurgen|k_yager|karl_|kevin|kilian|kiko|konstantin|"
    r"kurt|lauris|leif|leigh|linda|lion_k|lorenzo|lumen|m_m|marcelo|mariusz|mark_|martin_sch|massimo|"
    r"mateya|matt_|matthew|mauro|michael|michal|mike_|mikhail|mimooh|mirko|mitchell|mo_\d|mo_$|mo\d|"
    r"nae_|natha|nath_|nathan|nicola|nicu|niels|nodding|nurbl|nubl|olivier_\d|omar|openclip|openc|"
    r"orbu|orlando|patricia|pete_|peterm|petri|philippe|popolon|raphael|ralf|rikva|roberto|rodrigo|"
    r"rollandin|rolland|romus|ron_|rory|rosen|rotkevich|ross_|roman_|ryan|s_rgio|sami|santiago|"
    r"saurabh|sek_|sergio|sergi|seth|shandy|snuat|stefan|steffen|stuart|super|susan|symbol_j|tanguy|"
    r"taller|tess|teudi|theerud|thom_|tim_|timothy|toh_|tom_|ulipha|utrescu|valessio|virgin|"
    r"vladimir|william|yemu|yogesh|yves|yve_|yv_)"
)


@dataclass(frozen=True)
class Drawing:
    """One usable picture, before the choice."""

    path: str
    label: str
    folder: str
    caption: str
    picture: Image.Image

    @property
    def domain(self) -> str:
        """``"colour"`` or ``"black and white"``, told by the pixels."""
        pixels = np.asarray(self.picture, dtype=np.int16)
        chroma = pixels.max(axis=2) - pixels.min(axis=2)
        return "colour" if (chroma > 24).mean() > 0.005 else "black and white"


def build(packages: Path, folder: Path) -> dict[str, Any]:
    """Write the clip art set and report how many pictures fell out for which reason."""
    reasons: Counter[str] = Counter()
    chosen, spare = choose(list(usable(packages / PACKAGE, reasons)))
    reasons["More than the demo needs; drawn at random."] = spare
    blobs, coding = encode_all([drawing.picture for drawing in chosen])
    split = split_by_concept([d.label for d in chosen], [d.folder for d in chosen], SEED)
    items = pd.DataFrame(
        {
            "id": range(len(chosen)),
            "sha256": digests(blobs),
            "label": [d.label for d in chosen],
            "domain": [d.domain for d in chosen],
            "split": split,
            "caption": [d.caption for d in chosen],
            "folder": [d.folder for d in chosen],
            "file": [d.path for d in chosen],
        }
    )
    write_items(items, folder / "items.parquet")
    write_images(items["id"].tolist(), blobs, folder / "images.parquet")
    write_manifest(folder / "dataset.json", _manifest(len(chosen), reasons))
    return {"pictures": len(chosen), "coding": coding, "left out": dict(reasons)}


def usable(package: Path, reasons: Counter[str]) -> Iterator[Drawing]:
    """Yield each drawing that can be shown, once; count the others by reason."""
    seen: set[str] = set()
    for path, data in sorted(deb_files(package, PREFIX, ".png")):
        folder = str(PurePosixPath(path).parent)
        label = _label(folder)
        if label is None or LEFT_OUT_WORDS.search(path.lower()):
            reasons["In a folder or under a name the demo leaves out."] += 1
            continue
        picture, reason = prepare(data)
        if picture is None:
            reasons[reason] += 1
            continue
        digest = hashlib.sha256(picture.tobytes()).hexdigest()
        if digest in seen:
            reasons["The same pixels as another picture."] += 1
            continue
        seen.add(digest)
        yield Drawing(path, label, folder, caption(path), picture)


def _label(folder: str) -> str | None:
    if any(folder == f or folder.startswith(f + "/") for f in LEFT_OUT_FOLDERS):
        return None
    fits = [f for f in LABELS if folder == f or folder.startswith(f + "/")]
    return LABELS[max(fits, key=len)] if fits else None


def prepare(data: bytes) -> tuple[Image.Image | None, str]:
    """Fit a picture on a white square of ``SIDE`` pixels, or say why it cannot be used."""
    try:
        opened = Image.open(io.BytesIO(data))  # reads the header only
        width, height = opened.size
        if width * height > 4_000_000:
            return None, "Larger than four million pixels."
        if max(width, height) > 4 * min(width, height):
            return None, "More than four times as long as wide."
        rgba = opened.convert("RGBA")
    except (OSError, SyntaxError, Image.DecompressionBombError):
        return None, "Could not be decoded."
    box = rgba.getchannel("A").getbbox()
    if box is None:
        return None, "Fully transparent."
    rgba = rgba.crop(box)
    if max(rgba.size) < 64 or max(rgba.size) > 4 * min(rgba.size):
        return None, "Too small, or more than four times as long as wide."
    scale = (SIDE - 8) / max(rgba.size)
    size = (max(1, round(rgba.width * scale)), max(1, round(rgba.height * scale)))
    flat = Image.new("RGBA", rgba.size, "white")
    flat.alpha_composite(rgba)
    small = flat.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    square = Image.new("RGB", (SIDE, SIDE), "white")
    square.paste(small, ((SIDE - size[0]) // 2, (SIDE - size[1]) // 2))
    ink = 1 - np.asarray(square.convert("L"), dtype=np.float64).mean() / 255
    return (square, "") if ink > MIN_INK else (None, "Too faint on white.")


def caption(path: str) -> str:
    """Turn a file name into words: the author's name, numbers and separators dropped.

    >>> caption("animals/mammals/dog_head_nicu_buculei_01.png")
    'dog head'
    """
    stem = re.sub(r"\.svg.*", "", PurePosixPath(path).stem)
    stem = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", stem).lower()
    found = AUTHORS.search(stem)
    if found:
        stem = stem[: found.start()]
    words = [w for w in re.split(r"[^a-zà-ÿ0-9]+", stem) if w and not re.fullmatch(r"\d+.?", w)]
    words = [re.sub(r"(?<=[a-z]{3})\d+$", "", w) for w in words]
    words = [w for w in words if len(w) > 1]
    while words and words[-1] in NOISE_WORDS:
        words.pop()
    words = ["black and white" if w in ("bw", "bn") else w for w in words]
    text = " ".join(words)
    if text.startswith("architetto") or not re.search(r"[aeiouy].*[a-z]|[a-z].*[aeiouy]", text):
        return PurePosixPath(path).parent.name.replace("_", " ")  # the name says nothing
    return text if len(text) > 2 else PurePosixPath(path).parent.name.replace("_", " ")


def choose(drawings: list[Drawing]) -> tuple[list[Drawing], int]:
    """Take turns between labels, and between a label's folders, until the set is full."""
    rng = np.random.default_rng(SEED)
    queues: dict[str, list[Drawing]] = {}
    for label in sorted({d.label for d in drawings}):
        own = [d for d in drawings if d.label == label]
        own = [own[i] for i in rng.permutation(len(own))]
        turn: Counter[str] = Counter()
        ranked = []
        for drawing in own:
            turn[drawing.folder] += 1
            ranked.append((turn[drawing.folder], len(ranked), drawing))
        queues[label] = [drawing for _, _, drawing in sorted(ranked, key=lambda r: r[:2])]
    taken: list[Drawing] = []
    for place in range(PER_LABEL):
        for queue in queues.values():
            if place < len(queue) and len(taken) < N_PICTURES:
                taken.append(queue[place])
    taken.sort(key=lambda d: d.path)
    return taken, len(drawings) - len(taken)


def _manifest(n: int, reasons: Counter[str]) -> dict[str, Any]:
    return {
        "name": "clipart",
        "title": "Public-domain clip art",
        "kind": "image",
        "meta": {
            "source": "Open Clip Art Library 0.18, Debian package openclipart-png 1:0.18+dfsg-19",
            "licence": "Public domain dedication",
            "note": f"{n} drawings. Label = folder, domain = colour or black and white (told "
            "from the pixels), caption = the words of the file name, some of them Italian or "
            "French.",
            "left_out": [
                {"what": "clip art files", "reason": reason, "count": count}
                for reason, count in reasons.most_common()
            ],
        },
    }
