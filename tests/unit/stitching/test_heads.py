"""Heads against scikit-learn, and macro F1 against its definition there."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from core.errors import BadInput
from core.stitching import fit_head
from core.stitching.heads import macro_f1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_logistic_head_is_the_pipeline_of_scikit_learn(n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 200)
    x = rng.normal(size=(200, 6)) * 5.0 + y[:, None]
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=500)).fit(x, y)
    fresh = rng.normal(size=(300, 6)) * 5.0 + 1.0
    assert (fit_head(x, y).predict(fresh) == model.predict(fresh)).mean() > 0.99


def test_ridge_head_closed_form_and_missing_class():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 2], 50)
    x = rng.normal(size=(100, 5)) + 2.0 * y[:, None]
    x[:, 4] = 1.0
    head = fit_head(x, y, kind="ridge")
    assert set(head.predict(x)) == {0, 2}
    assert (head.predict(x) == y).mean() > 0.95


def test_the_papers_head_against_torch_and_one_sample_at_a_time(digits):
    """Its published form looks at the whole batch; here a sample is judged by itself."""
    import torch
    from torch.nn import functional as F

    train, test, y, yt = digits
    head = fit_head(train[2], y, kind="tanh")
    assert (head.predict(test[2]) == yt).mean() > 0.9
    whole, alone = head.scores(test[2][:9]), [head.scores(test[2][i : i + 1])[0] for i in range(9)]
    np.testing.assert_allclose(whole, alone, atol=1e-10)
    unit = F.normalize(torch.as_tensor(test[2][:9]))
    t = {name: torch.as_tensor(value) for name, value in vars(head).items()}
    hidden = torch.tanh(F.layer_norm(unit, (96,), t["gain"], t["shift"]) @ t["inner"]
                        + t["inner_bias"])  # fmt: skip
    expected = ((hidden - t["mean"]) / t["scale"]) @ t["weights"] + t["bias"]
    np.testing.assert_allclose(whole, expected.numpy(), atol=1e-10)
    again = fit_head(train[2], y, kind="tanh")
    assert (again.weights == head.weights).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_macro_f1(seed):
    rng = np.random.default_rng(seed)
    y, p = rng.integers(0, 5, 80), rng.integers(0, 6, 80)
    assert np.isclose(macro_f1(y, p), f1_score(y, p, average="macro"))


def test_bad_input_is_named():
    x = np.ones((4, 2))
    with pytest.raises(BadInput, match="head='svm'"):
        fit_head(x, np.array([0, 1, 0, 1]), kind="svm")
    with pytest.raises(BadInput, match="one class"):
        fit_head(x, np.zeros(4, dtype=int))
