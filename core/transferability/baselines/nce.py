"""NCE: minus the conditional entropy of target labels given a source classifier's decisions.

Tran, Nguyen, Hassner, "Transferability and Hardness of Supervised Classification Tasks",
ICCV 2019, Eq. 3. Equal to LEEP of one-hot predictions.

Axes: N target items.
"""

from __future__ import annotations

import numpy as np

from core.errors import BadInput
from core.transferability.baselines.checks import as_codes


def nce(z: np.ndarray, y: np.ndarray) -> float:
    """Return the negative conditional entropy ``-H(y | z)``; higher is better.

    Parameters
    ----------
    z : ndarray, shape (N,)
        Source class decided on for each target item, of any type.
    y : ndarray, shape (N,)
        Target labels of any type.

    Returns
    -------
    float
        In nats, in [-H(y), 0]; 0 when ``z`` determines ``y``.

    Raises
    ------
    BadInput
        No item, or lengths that differ.

    Examples
    --------
    >>> import numpy as np
    >>> round(nce(np.array([0, 0, 1, 1, 0, 1]), np.array([0, 0, 1, 1, 1, 0])), 6)
    -0.636514
    """
    decided = np.asarray(z)
    if decided.ndim != 1 or len(decided) == 0:
        raise BadInput(f"z has shape {decided.shape}, expected (N,) with N >= 1.")
    codes_z, n_z = as_codes(decided, len(decided), "z")
    codes_y, n_y = as_codes(y, len(decided))
    joint = np.bincount(codes_y * n_z + codes_z, minlength=n_y * n_z).reshape(n_y, n_z)
    share = joint / len(decided)
    given = joint / joint.sum(0)
    seen = joint > 0
    return float((share[seen] * np.log(given[seen])).sum()) + 0.0
