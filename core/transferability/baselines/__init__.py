"""Published measures, one a file; ``core.transferability`` exports the functions.

They stand in a package of their own because a module ``leep`` beside the exporting package's
``__init__`` would hide the function of the same name.
"""
