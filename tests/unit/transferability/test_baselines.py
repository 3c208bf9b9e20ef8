"""Each published measure against stored values of its authors' code, or a re-derivation."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.covariance import LedoitWolf
from sklearn.datasets import load_digits

from core.errors import BadInput
from core.transferability import h_score, leep, logme, nce, transrate

REFERENCE = json.loads(
    (Path(__file__).parents[2] / "reference" / "reference_values.json").read_text()
)
PROBS = np.array([[0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9]])
UNBALANCED = np.array([0] * 7 + [1] * 3 + [2] * 2)


def waves(n, d):
    """The specification's feature matrix."""
    i, j = np.arange(n)[:, None], np.arange(d)
    return np.sin(1 + 0.7 * i * (j + 1)) + 0.3 * np.cos(i + j)


def stored(name):
    return pytest.approx(REFERENCE[f"transfer/{name}"]["value"], rel=1e-9)


@pytest.fixture(scope="module")
def dirichlet():
    probs = np.random.default_rng(14).dirichlet(np.ones(20) * 0.3, 500)
    return probs, np.random.default_rng(15).integers(0, 5, 500)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(3)
    y = rng.integers(4, size=90)
    return rng.normal(0, 1, (4, 12))[y] + rng.standard_normal((90, 12)), y


def test_leep_and_nce_of_the_authors_code(dirichlet):
    probs, y = dirichlet
    assert leep(probs, y) == stored("leep")
    assert nce(probs.argmax(1), y) == stored("nce")


def test_leep_and_nce_of_the_specification():
    assert leep(PROBS, np.array([0, 0, 1, 1])) == pytest.approx(-0.471248, abs=1e-6)
    z, y = np.array([0, 0, 1, 1, 0, 1]), np.array([0, 0, 1, 1, 1, 0])
    assert nce(z, y) == pytest.approx(-0.636514, abs=1e-6)


def test_nce_is_leep_of_decisions(dirichlet):
    probs, y = dirichlet
    z = probs.argmax(1)
    assert leep(np.eye(20)[z], y) == pytest.approx(nce(z, y), rel=1e-12)


def test_saying_nothing_scores_minus_the_entropy_of_the_labels():
    y = np.array([0, 0, 1, 1])
    assert leep(np.full((4, 3), 1 / 3), y) == pytest.approx(-np.log(2))
    assert leep(np.array([[1.0, 0.0]] * 4), y) == pytest.approx(-np.log(2))
    assert nce(np.zeros(4), y) == pytest.approx(-np.log(2))
    assert nce(y, y) == 0.0


def test_label_names_and_order_do_not_matter(dirichlet):
    probs, y = dirichlet
    turn = np.random.default_rng(0).permutation(500)
    names = np.array(list("vwxyz"))[y]
    assert leep(probs[turn], names[turn]) == pytest.approx(leep(probs, y), rel=1e-12)
    assert nce(probs.argmax(1), names) == nce(probs.argmax(1), y)


def test_logme_of_the_authors_code():
    digits = load_digits()
    assert logme(digits.data / 16, digits.target) == stored("logme_digits")
    x = np.random.default_rng(11).standard_normal((600, 48))
    targets = x[:, :3] @ np.ones((3, 2)) + np.random.default_rng(13).standard_normal((600, 2))
    assert logme(x, targets) == stored("logme_regression")
    y = np.random.default_rng(12).integers(0, 7, 600)
    x[np.arange(600), y] += 1
    assert logme(x, y) == stored("logme_synth")


@pytest.mark.parametrize(
    ("variant", "tall", "wide"),
    [("fixed_point", -0.834538, -1.098378), ("icml", -0.834856, -1.098436)],
)
def test_logme_of_the_specification(variant, tall, wide):
    assert logme(waves(12, 3), np.arange(12) % 3, variant=variant) == pytest.approx(tall, abs=1e-6)
    # More features than items: without the missing log-determinant this would be +2.26.
    assert logme(waves(8, 20), np.arange(8) % 2, variant=variant) == pytest.approx(wide, abs=1e-6)


def test_logme_is_the_evidence_of_a_linear_model(blobs):
    """With the alpha and beta that the iteration ends at, by the Gaussian marginal itself."""
    x, y = blobs
    total = 0.0
    for c in range(4):
        t = (y == c).astype(float)
        u, s, _ = np.linalg.svd(x, full_matrices=False)
        alpha = beta = 1.0
        for _ in range(200):
            tau, z = alpha / beta, (u.T @ t) ** 2
            gamma = (s**2 / (s**2 + tau)).sum()
            alpha = gamma / ((s**2 * z / (tau + s**2) ** 2).sum() + 1e-5)
            rest = (z / (1 + s**2 / tau) ** 2).sum() + t @ t - z.sum()
            beta = (90 - gamma) / (rest + 1e-5)
        cov = np.eye(90) / beta + x @ x.T / alpha
        log_det = np.linalg.slogdet(cov)[1]
        total += -0.5 * (90 * np.log(2 * np.pi) + log_det + t @ np.linalg.solve(cov, t)) / 90
    assert logme(x, y) == pytest.approx(total / 4, abs=2e-4)


def test_logme_survives_features_without_rank(blobs):
    x, y = blobs
    doubled = np.concatenate([x, x, np.zeros((90, 5))], axis=1)
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((29, 29)))[0]
    assert logme(doubled @ turn, y) == pytest.approx(logme(doubled, y), rel=1e-6)
    assert np.isfinite(logme(doubled, y))


def test_transrate_of_the_specification():
    x = waves(12, 3)
    for weighting in ("listing", "size"):
        value = transrate(x, np.arange(12) % 3, weighting=weighting)
        assert value == pytest.approx(1.024271, abs=1e-6)
    assert transrate(x, UNBALANCED) == pytest.approx(1.947056, abs=1e-6)
    assert transrate(x, UNBALANCED, weighting="size") == pytest.approx(0.965179, abs=1e-6)


@pytest.mark.parametrize("d", [3, 40, 200])
@pytest.mark.parametrize("normalize", [False, True])
def test_transrate_by_plain_determinants(d, normalize):
    rng = np.random.default_rng(d)
    y = rng.choice(3, 150, p=[0.6, 0.3, 0.1])
    x = rng.standard_normal((150, d)) + y[:, None]
    z = x / np.linalg.norm(x, axis=1, keepdims=True) if normalize else x
    z = z - z.mean(0)

    def rate(part):
        return 0.5 * np.linalg.slogdet(np.eye(d) + part.T @ part / (len(part) * 1e-4))[1]

    want = rate(z) - np.mean([rate(z[y == c]) for c in range(3)])
    assert transrate(x, y, normalize=normalize) == pytest.approx(want, rel=1e-9)


def test_h_score_of_the_specification_and_of_numpy(blobs):
    assert h_score(waves(12, 3), np.arange(12) % 3) == pytest.approx(0.940010, abs=1e-5)
    x, y = blobs
    between = np.stack([x[y == c].mean(0) for c in range(4)])[y]
    want = np.trace(np.linalg.pinv(np.cov(x.T), rcond=1e-15) @ np.cov(between.T))
    assert h_score(x, y) == pytest.approx(want, rel=1e-9)
    model = LedoitWolf().fit(x)
    shrunk = (1 - model.shrinkage_) * np.cov(between.T)
    want = np.trace(np.linalg.inv(model.covariance_) @ shrunk)
    assert h_score(x, y, shrinkage=True) == pytest.approx(want, rel=1e-9)


def test_the_plain_h_score_is_blind_with_few_items_and_the_shrunk_one_is_not():
    rng = np.random.default_rng(5)
    y = np.arange(30) % 3
    signal = rng.normal(0, 2, (3, 60))[y] + rng.standard_normal((30, 60))
    noise = rng.standard_normal((30, 60))
    assert h_score(noise, y) == pytest.approx(2.0) == h_score(signal, y)
    assert h_score(noise, y, shrinkage=True) < 0.5 < h_score(signal, y, shrinkage=True)


@pytest.mark.parametrize(
    "score", [logme, transrate, h_score, lambda x, y: h_score(x, y, shrinkage=True)]
)
def test_a_rotation_changes_nothing_and_labels_that_fit_score_higher(score, blobs):
    x, y = blobs
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((12, 12)))[0]
    assert score(x @ turn, y) == pytest.approx(score(x, y), rel=1e-8)
    assert score(x, y) > score(x, np.random.default_rng(4).permutation(y))
    assert score(np.tile(x, (60, 1)).astype(np.float32), np.tile(y, 60)) > -np.inf


def test_degenerate_input():
    assert h_score(np.ones((5, 2)), np.arange(5)) == 0.0
    assert h_score(np.ones((5, 2)), np.arange(5), shrinkage=True) == 0.0
    assert transrate(waves(12, 3), np.zeros(12)) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(BadInput, match="all zero"):
        logme(np.zeros((5, 2)), np.arange(5))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: leep(-PROBS, np.zeros(4)), "negative"),
        (lambda: leep(PROBS, np.zeros(3)), r"expected \(4,\)"),
        (lambda: leep(np.full((4, 2), np.nan), np.zeros(4)), "8 values that are not finite"),
        (lambda: nce(np.zeros((2, 2)), np.zeros(2)), r"expected \(N,\)"),
        (lambda: logme(waves(4, 2), np.zeros(4), variant="new"), "variant='new'"),
        (lambda: logme(waves(4, 2), np.zeros((3, 1))), "y has 3 rows"),
        (lambda: transrate(waves(4, 2), np.zeros(4), weighting="none"), "weighting='none'"),
        (lambda: transrate(waves(4, 2), np.zeros(4), eps=0.0), "eps=0.0"),
        (lambda: h_score(np.zeros((1, 2)), np.zeros(1)), "1 row"),
        (lambda: h_score(np.zeros((0, 2)), np.zeros(0)), r"shape \(0, 2\)"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(BadInput, match=words):
        call()


def test_leep_is_a_mean_of_logs_written_out(dirichlet):
    probs, y = dirichlet
    joint = np.stack([probs[y == c].sum(0) for c in range(5)])
    log_given = np.log(joint / joint.sum(0))
    rows = [logsumexp(log_given[c] + np.log(p)) for c, p in zip(y, probs, strict=True)]
    assert leep(probs, y) == pytest.approx(np.mean(rows), rel=1e-9)
