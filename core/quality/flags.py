"""The flags a metric's value may carry, and what each says."""

from __future__ import annotations

from collections.abc import Mapping

#: Every flag a value may carry, in the words the page shows.
FLAGS: Mapping[str, str] = {
    "nonfinite_rows": "Rows with NaN or infinity were left out.",
    "invalid": "More than 1 % of the rows are not finite: do not use this record.",
    "zero_rows": "Some rows are all zero; measures on unit rows leave them out.",
    "too_few_rows": "Too few rows for this metric.",
    "collapsed": "The cloud is constant up to rounding: there is nothing to measure.",
    "near_collapse": "Rows are almost identical; centred metrics cannot see that.",
    "rank_capped": "No more samples than features: at most n - 1 directions exist.",
    "rank_deficient": "Some directions carry no variance; the last one that does is used.",
    "few_eigenvalues": "Fewer than five usable eigenvalues in the fit range.",
    "duplicates": "Exact duplicates were counted once.",
    "quantized": "Many samples have two equally near neighbours: the features are quantized.",
    "lower_bound": "Above about 20 the estimate is biased low: read it as a lower bound.",
    "subsampled": "Computed on a seeded subset of the rows.",
}
