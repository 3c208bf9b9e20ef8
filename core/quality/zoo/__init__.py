"""A population of 260 small networks trained here, to ask the study's question of real data.

``python -m core.quality.zoo --out FOLDER`` trains and measures them, one row file a model;
``python -m core.quality.zoo assemble --out FOLDER --table FILE`` makes the table the page shows.
A model's row follows from its :class:`~core.quality.zoo.plan.ModelSpec` alone.
"""
