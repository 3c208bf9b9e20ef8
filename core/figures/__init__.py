"""From a stored result to a plotly figure. Nothing is computed again here."""
