"""The implementations behind *Executable Deep Learning*, one folder for each chapter.

A chapter imports earlier chapters and what all share: ``data``, ``figures``, ``assignment``
and ``checks``. Nothing is re-exported here: importing a NumPy module never loads PyTorch.
"""
