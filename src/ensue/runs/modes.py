"""Hand down to GLUE and SuperGLUE the ways of answering that train a network; importing this registers them."""

from __future__ import annotations

from ensue.benchmarks.nlu.systems import register

register("train", "ensue.train.sentences.system:system")
register("finetune", "ensue.train.finetune.system:system")
