"""Ranks, resampling over clusters, false discovery, permutation: numpy in, numpy out."""

from __future__ import annotations

from core.stats.bootstrap import (
    SpearmanBootstrap,
    cluster_codes,
    cluster_weights,
    spearman_cluster_bootstrap,
)
from core.stats.fdr import benjamini_hochberg
from core.stats.intervals import (
    Interval,
    cluster_mean_interval,
    cluster_share_interval,
    wilson_interval,
)
from core.stats.permutation import (
    Permutation,
    kendall_permutation,
    sign_flip_p,
    spearman_permutation,
)
from core.stats.ranks import mid_ranks, spearman, weighted_mid_ranks

__all__ = [
    "Interval",
    "Permutation",
    "SpearmanBootstrap",
    "benjamini_hochberg",
    "cluster_codes",
    "cluster_mean_interval",
    "cluster_share_interval",
    "cluster_weights",
    "kendall_permutation",
    "mid_ranks",
    "sign_flip_p",
    "spearman",
    "spearman_cluster_bootstrap",
    "spearman_permutation",
    "weighted_mid_ranks",
    "wilson_interval",
]
