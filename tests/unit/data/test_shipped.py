"""The shipped data sets: what the rest of the product takes for granted about them."""

from __future__ import annotations

import hashlib
import io
import json
import re

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from PIL import Image

from core.data.dataset import normalise_items
from core.paths import assets_dir

STYLES = ["twemoji", "noto", "openmoji", "fluent-flat", "fluent-hc", "emojione"]
LANGUAGES = ["en", "de", "fr", "es", "ru", "zh", "ja", "pt"]
DEMO = assets_dir() / "demo"


def items(name):
    return pd.read_parquet(DEMO / name / "items.parquet")


@pytest.mark.parametrize(("name", "n"), [("emoji", 1920), ("names", 2560), ("clipart", 1500)])
def test_items_are_valid(name, n):
    table = items(name)
    about = json.loads((DEMO / name / "dataset.json").read_text())
    assert len(table) == n
    assert table["id"].tolist() == list(range(n))
    assert about["name"] == name
    assert len(normalise_items(table, about["kind"])) == n
    for column in ("label", "domain", "caption"):
        assert (table[column].str.strip() != "").all(), column
    assert set(table["split"]) == {"train", "test"}
    assert 0.30 < (table["split"] == "test").mean() < 0.36


@pytest.mark.parametrize("name", ["emoji", "names", "clipart"])
def test_source_licence_and_what_was_left_out_are_stated(name):
    meta = json.loads((DEMO / name / "dataset.json").read_text())["meta"]
    assert meta["source"]
    assert meta["licence"]
    assert all(line["count"] > 0 and line["reason"].endswith(".") for line in meta["left_out"])
    text = (DEMO / name / "SOURCE.md").read_text()
    named = re.findall(r"licences/([\w.-]+\.txt)", text)
    assert named
    assert all((assets_dir() / "licences" / file).is_file() for file in named)


@pytest.mark.parametrize(("name", "domains"), [("emoji", STYLES), ("names", LANGUAGES)])
def test_id_is_concept_index_times_domains_plus_domain_index(name, domains):
    table = items(name)
    concepts = list(dict.fromkeys(table["concept"]))
    assert len(concepts) == 320
    place = {concept: index for index, concept in enumerate(concepts)}
    expected = table["concept"].map(place) * len(domains) + table["domain"].map(domains.index)
    assert expected.tolist() == table["id"].tolist()


@pytest.mark.parametrize("name", ["emoji", "names"])
def test_a_concept_is_on_one_side_of_the_split(name):
    assert (items(name).groupby("concept")["split"].nunique() == 1).all()


def test_names_and_pictures_share_concepts_split_label_and_english_text():
    pictures = items("emoji").drop_duplicates("concept").set_index("concept")
    english = items("names").query("domain == 'en'").set_index("concept")
    for column in ("split", "label", "subgroup", "caption"):
        assert (pictures[column] == english.loc[pictures.index, column]).all(), column


def test_every_group_is_in_both_splits_a_third_in_test():
    table = items("emoji").drop_duplicates("concept")
    share = (table["split"] == "test").groupby(table["label"]).mean()
    assert len(share) == 7
    assert share.between(0.3, 0.37).all()
    assert table["subgroup"].nunique() == 79


def test_names_exist_in_28_locales():
    table = items("emoji")
    columns = [c for c in table.columns if c.startswith("name_")]
    assert len(columns) == 28
    assert all((table[c].str.strip() != "").all() for c in columns)


def test_clip_art_labels_are_balanced_and_both_domains_are_there():
    table = items("clipart")
    counts = table["label"].value_counts()
    assert 12 <= len(counts) <= 20
    assert counts.max() <= 120
    assert counts.min() >= 40
    assert set(table["domain"]) == {"colour", "black and white"}
    assert table["file"].is_unique


@pytest.mark.parametrize("name", ["emoji", "clipart"])
def test_pictures_match_their_digest_decode_and_show_something(name):
    table = items(name)
    packed = pq.read_table(DEMO / name / "images.parquet").to_pydict()
    assert packed["id"] == table["id"].tolist()
    assert packed["sha256"] == table["sha256"].tolist()
    # One blob per digest: pixels are looked at once.
    seen = dict(zip(packed["sha256"], packed["bytes"], strict=True))
    for sha, data in seen.items():
        assert hashlib.sha256(data).hexdigest() == sha
        picture = Image.open(io.BytesIO(data))
        assert picture.size == (192, 192)
        grey = np.asarray(picture.convert("L"))
        assert grey.std() > 5, sha
        corners = grey[[0, 0, -1, -1], [0, -1, 0, -1]]
        assert (corners > 240).any() or name == "emoji", sha
    assert len(seen) == len(table)


def test_registry_and_published_accuracies_are_whole():
    models = pd.read_csv(assets_dir() / "registry" / "model_registry.csv")
    published = pd.read_csv(assets_dir() / "registry" / "published_accuracy.csv")
    assert len(models) == 554
    assert models["id"].is_unique
    assert int(models["core260"].sum()) == 260
    assert len(published) == 2466
    assert published["source"].notna().all()


def test_the_data_stay_small():
    folders = [DEMO / name for name in ("emoji", "names", "clipart")]
    size = sum(p.stat().st_size for folder in folders for p in folder.iterdir())
    assert size < 30 * 2**20
