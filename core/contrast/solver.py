"""The exact solver of one KODA problem, for matrices small enough to diagonalise.

maximise a(x) = x' A x  subject to  b(x) = x' B x <= eps, |x| = 1        (arXiv 2606.04180, Eq. 8)

The dual D(lam) = lmax(A - lam B) + lam eps bounds every feasible a(x), and the gap is zero: the
semidefinite relaxation has a rank-one optimum (Barvinok-Pataki: r (r + 1) / 2 <= 2). The paper's
rule "take the leading eigenvector" fails where it is not unique; here two points on either side
of the constraint span a plane, in which the problem is solved in closed form, and the cutting
planes of D close the bracket. No multiplicity is ever detected.

Axes: n rows of A and B.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

CERTIFIED_GAP = 1e-6  # relative to lmax(A): a wider gap is shown as "not certified"
_EDGE = 1e-12  # eps this close to lmin(B), relative to |B|, is the boundary case
_MAX_STEPS = 300


@dataclass(frozen=True)
class Solution:
    """A unit vector, its value, and the proof of how good it is.

    Attributes
    ----------
    x : ndarray, shape (n,)
    objective, constraint : float
        a(x) and b(x).
    multiplier : float
        lambda of the best dual bound (0: the constraint does not bind; inf: no bound).
    dual_bound : float
        No feasible point is better than this.
    status : {"active", "inactive", "boundary", "infeasible", "not certified"}
    scale : float
        lmax(A), what the relative gap is relative to.
    """

    x: np.ndarray
    objective: float
    constraint: float
    multiplier: float
    dual_bound: float
    status: str
    scale: float

    @property
    def gap(self) -> float:
        """Dual bound minus objective, never below 0; nan when infeasible."""
        return float(np.maximum(self.dual_bound - self.objective, 0.0))


@dataclass(frozen=True)
class _Point:
    lam: float
    x: np.ndarray
    a: float
    b: float


class _Problem:
    """A, B, eps, with the dual bound and the best feasible point seen so far."""

    def __init__(self, A: np.ndarray, B: np.ndarray, eps: float) -> None:
        self.A, self.B, self.eps = A, B, eps
        self.upper, self.multiplier = np.inf, 0.0

    def point(self, lam: float) -> _Point:
        """Evaluate D(lam) and return a leading eigenvector of A - lam B."""
        matrix = self.A if lam == 0.0 else self.A - lam * self.B
        value, x = extreme(matrix, largest=True)
        bound = value + lam * self.eps
        if bound < self.upper:
            self.upper, self.multiplier = bound, lam
        return _Point(lam, x, self.a(x), self.b(x))

    def a(self, x: np.ndarray) -> float:
        return float(x @ self.A @ x)

    def b(self, x: np.ndarray) -> float:
        return float(x @ self.B @ x)

    def solution(self, x: np.ndarray, status: str, scale: float) -> Solution:
        return Solution(x, self.a(x), self.b(x), self.multiplier, self.upper, status, scale)


def extreme(matrix: np.ndarray, *, largest: bool) -> tuple[float, np.ndarray]:
    """Return the largest (or smallest) eigenvalue of a symmetric matrix and its vector."""
    at = matrix.shape[0] - 1 if largest else 0
    values, vectors = eigh(matrix, subset_by_index=(at, at), check_finite=False)
    if len(values) == 1:
        return float(values[0]), vectors[:, 0]
    # LAPACK's syevr finds nothing on some matrices with a cluster of equal eigenvalues.
    values, vectors = np.linalg.eigh(matrix)
    return float(values[at]), vectors[:, at]


def solve(
    A: np.ndarray, B: np.ndarray, eps: float, *, tol: float = 1e-12, floor: float = 0.0
) -> Solution:
    """Solve one KODA problem exactly.

    Parameters
    ----------
    A, B : ndarray, shape (n, n), float64
        Symmetric positive semidefinite.
    eps : float
        Bound on x' B x.
    tol : float
        Stop when the gap is below ``tol`` times lmax(A).
    floor : float
        Least value of lmax(A) that counts as more than rounding.

    Returns
    -------
    Solution
        "infeasible" when eps is below lmin(B): x is then B's bottom vector and constraint is
        lmin(B), the least eps that can be met.

    Examples
    --------
    >>> A, B = np.diag([3.0, 2, 1, 0]), np.diag([3.0, 1, 0.2, 0.1])
    >>> [round(solve(A, B, e).objective, 9) for e in (2.0, 1.5, 0.6)]
    [2.5, 2.25, 1.5]
    """
    problem = _Problem(A, B, eps)
    lo = problem.point(0.0)
    scale = max(lo.a, floor)
    if lo.b <= eps:
        return problem.solution(lo.x, "inactive", scale)
    b_min, x_min = extreme(B, largest=False)
    edge = _EDGE * max(extreme(B, largest=True)[0], 0.0)
    if eps < b_min - edge:
        return Solution(x_min, problem.a(x_min), b_min, np.inf, np.nan, "infeasible", scale)
    if eps <= b_min + edge:
        return _boundary(problem, b_min + 2.0 * edge, scale)
    if problem.a(x_min) >= lo.a * (1.0 - 1e-15):
        return problem.solution(x_min, "active", scale)
    hi = _bracket(problem, lo, x_min, b_min)
    return _close(problem, lo, hi, tol * scale, scale)


def _bracket(problem: _Problem, lo: _Point, x_min: np.ndarray, b_min: float) -> _Point:
    """Find a lam whose leading eigenvector is feasible; lam* lies below it."""
    lam = (lo.a - problem.a(x_min)) / (problem.eps - b_min) * (1.0 + 1e-9)
    for _ in range(60):
        hi = problem.point(lam)
        if hi.b <= problem.eps:
            return hi
        lam *= 2.0
    # lmin(B) itself is feasible: rounding near the boundary hid the crossing.
    return _Point(lam, x_min, problem.a(x_min), b_min)


def _close(problem: _Problem, lo: _Point, hi: _Point, tol: float, scale: float) -> Solution:
    """Shrink the bracket until the dual bound meets the best point of the plane."""
    best = in_plane(problem.A, problem.B, problem.eps, hi.x, lo.x)
    best_a = problem.a(best)
    for step in range(_MAX_STEPS):
        if problem.upper - best_a <= tol:
            break
        lam = _next_multiplier(lo, hi, step)
        if not lo.lam < lam < hi.lam:
            break
        point = problem.point(lam)
        if point.b <= problem.eps:
            hi = point
        else:
            lo = point
        x = in_plane(problem.A, problem.B, problem.eps, hi.x, lo.x)
        if problem.a(x) > best_a:
            best, best_a = x, problem.a(x)
    certified = problem.upper - best_a <= CERTIFIED_GAP * max(scale, 1e-300)
    return problem.solution(best, "active" if certified else "not certified", scale)


def _next_multiplier(lo: _Point, hi: _Point, step: int) -> float:
    """Cross the two cutting planes; every third step bisect, so that progress is certain."""
    if step % 3 == 2:
        wide = lo.lam > 0.0 and hi.lam > 10.0 * lo.lam
        return float(np.sqrt(lo.lam * hi.lam)) if wide else 0.5 * (lo.lam + hi.lam)
    drop = lo.b - hi.b
    return (lo.a - hi.a) / drop if drop > 0.0 else 0.5 * (lo.lam + hi.lam)


def _boundary(problem: _Problem, cut: float, scale: float) -> Solution:
    """Solve at eps = lmin(B), where only the bottom eigenspace of B is feasible."""
    values, vectors = np.linalg.eigh(problem.B)
    space = vectors[:, values <= cut]
    x = space @ extreme(space.T @ problem.A @ space, largest=True)[1]
    size = max(float(values[-1]), 1e-300)
    for power in range(10):
        problem.point(scale / size * 10.0**power)
    return problem.solution(x, "boundary", scale)


def in_plane(
    A: np.ndarray, B: np.ndarray, eps: float, feasible: np.ndarray, other: np.ndarray
) -> np.ndarray:
    """Return the best feasible unit vector in the plane of two vectors.

    On x(t) = cos t e1 + sin t e2 both forms are m + p cos 2t + r sin 2t; the optimum is a
    stationary point of a or a root of b(t) = eps.

    Examples
    --------
    >>> e1, e2 = np.eye(2)
    >>> x = in_plane(np.diag([0.0, 1.0]), np.diag([0.0, 1.0]), 0.25, e1, e2)
    >>> round(float(x[1] ** 2), 12)
    0.25
    """
    e1 = feasible / np.linalg.norm(feasible)
    e2 = other - (e1 @ other) * e1
    e2 = e2 - (e1 @ e2) * e1
    length = np.linalg.norm(e2)
    if length <= 1e-14:
        return e1
    basis = np.stack([e1, e2 / length], axis=1)
    a_form, b_form = basis.T @ A @ basis, basis.T @ B @ basis
    p_a, r_a = 0.5 * (a_form[0, 0] - a_form[1, 1]), a_form[0, 1]
    m_b = 0.5 * (b_form[0, 0] + b_form[1, 1])
    p_b, r_b = 0.5 * (b_form[0, 0] - b_form[1, 1]), b_form[0, 1]
    top = 0.5 * np.arctan2(r_a, p_a)
    angles = [0.0, top, top + 0.5 * np.pi]
    amplitude, phase = np.hypot(p_b, r_b), np.arctan2(r_b, p_b)
    if amplitude > 0.0 and abs(eps - m_b) <= amplitude:
        turn = np.arccos((eps - m_b) / amplitude)
        angles += [0.5 * (phase + turn), 0.5 * (phase - turn)]
    points = np.stack([np.cos(angles), np.sin(angles)])
    a = np.einsum("it,ij,jt->t", points, a_form, points)
    b = np.einsum("it,ij,jt->t", points, b_form, points)
    slack = 4e-16 * max(abs(b_form).max(), 1e-300)
    a[(b > eps + slack) & (np.arange(len(a)) > 0)] = -np.inf
    return basis @ points[:, int(np.argmax(a))]
