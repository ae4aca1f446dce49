"""What GLUE and SuperGLUE share: examples, systems that answer them, judging, submissions, reports."""

from ensue.benchmarks.base import Baseline

_NAMED = "ensue.benchmarks.nlu.systems:named"
# The systems that are trained on a task, or need no model.
SYSTEMS = {
    "most-frequent": Baseline(_NAMED, "the commonest label"),
    "hypothesis-only": Baseline(_NAMED, "the second text alone"),
    "cbow": Baseline(_NAMED, "bags of word vectors, trained"),
    "bilstm": Baseline(_NAMED, "the paper's BiLSTM, trained"),
    "bilstm-attention": Baseline(_NAMED, "the same with attention between the texts"),
}
