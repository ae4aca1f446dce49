"""Models this package trains itself, each in a folder of its own; `TRAINERS` is the one place that lists them."""

from ensue.lazy import make_callable

make_callable(__name__)

# What `ensue train NAME` trains: the dataclass of its options, which names the function that trains.
TRAINERS = {
    "suffixlm": "ensue.train.suffixlm.options:SuffixOptions",
    "encoder": "ensue.train.encoder.options:EncoderOptions",
    "qa": "ensue.train.qa.options:AnswererOptions",
    "qg": "ensue.train.qg.options:QuestionerOptions",
    "grid": "ensue.train.grid.options:GridOptions",
    "lm": "ensue.train.lm.options:LanguageOptions",
    "coherence": "ensue.train.coherence.options:CoherenceOptions",
    "reader": "ensue.train.reader.options:ReaderOptions",
    "summarizer": "ensue.train.summarizer.options:SummarizerOptions",
}
