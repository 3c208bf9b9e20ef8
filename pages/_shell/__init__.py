"""The only Streamlit helpers: pages are written with these and with ``core``.

``state`` workspace and URL-bound widgets · ``pickers`` dataset, model, layer, domain ·
``layout`` header, verdict tiles, footer · ``charts`` figure with its table twin ·
``grid`` pictures with captions · ``jobs`` stored result or a job that makes it ·
``errors`` what a person can mend, and what is a bug · ``words`` numbers and terms.
"""
