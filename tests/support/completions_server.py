"""A real HTTP server with the OpenAI completions API over a real (small) model, and faults on demand."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import torch

SENTENCES = (
    "The sun rose over the hill, and the birds began to sing.",
    "She opened the old letter and read it twice before she spoke.",
    "Nobody had expected the train to arrive so early that morning.",
    "The café on the corner — the one with the green door — was closed.",
    "He wrote the answer on the board, and the whole class laughed.",
    "When the rain stopped, the children ran into the garden again.",
    "“Where are you going?” asked the captain, looking at the map.",
    "The summary follows the story, but the ending is another one.",
)


class Told(NamedTuple):
    """What the server tells of one token; `best` is the likeliest token for its place."""

    text: str
    offset: int
    logprob: float | None
    best: tuple[str, float] | None = None
    id: int = 7


class LocalModel:
    """A causal language model scored with plain torch, one text at a time."""

    def __init__(
        self,
        model: Any,
        encode: Callable[[str], list[int]],
        decode: Callable[[list[int]], str],
        bos: int | None = None,
    ) -> None:
        self.model = model.eval()
        self.encode = encode
        self.decode = decode
        self.bos = bos
        self._lock = threading.Lock()

    def ids(self, text: str) -> list[int]:
        return ([] if self.bos is None else [self.bos]) + self.encode(text)

    def distributions(self, ids: Sequence[int]) -> torch.Tensor:
        """Log-probabilities of the next token after each of `ids`."""
        with self._lock, torch.inference_mode():
            return self.model(torch.tensor([list(ids)])).logits[0].double().log_softmax(-1)

    def score_tokens(self, prompt: str | list[int]) -> list[Told]:
        """Every token of a prompt as vLLM tells it: a BOS by its name, offsets by adding up lengths."""
        ids = self.ids(prompt) if isinstance(prompt, str) else prompt
        after = self.distributions(ids)
        told, offset = [], 0
        for place, token in enumerate(ids):
            logprob, best = None, None
            if place:
                logprob = after[place - 1, token].item()
                top = after[place - 1].max(-1)
                best = (self.decode([int(top.indices)]), top.values.item())
            told.append(Told(self.decode([token]), offset, logprob, best, token))
            offset += len(told[-1].text)
        return told

    def continue_text(self, prompt: str | list[int], max_tokens: int) -> list[tuple[str, float]]:
        """A greedy continuation, token by token."""
        ids, told = self.ids(prompt) if isinstance(prompt, str) else list(prompt), []
        for _ in range(max_tokens):
            top = self.distributions(ids)[-1].max(-1)
            ids.append(int(top.indices))
            told.append((self.decode(ids[-1:]), top.values.item()))
        return told


def tiny_model(*, bos: bool = False) -> LocalModel:
    """A random-weight Llama over a byte-level BPE trained on a few sentences; it splits rare characters."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=["<s>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    torch.manual_seed(20)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=512,
        # Wide enough that tokens differ much in probability and a misplaced one shows.
        initializer_range=0.6,
    )
    served = LocalModel(
        LlamaForCausalLM(config).double(),
        lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
        lambda ids: tokenizer.decode(ids, skip_special_tokens=False),
        bos=tokenizer.token_to_id("<s>") if bos else None,
    )
    served.tokenizer = tokenizer  # type: ignore[attr-defined]
    return served


def folder_model(folder: Path) -> LocalModel:
    """The causal model of a folder, in full precision."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("a")["input_ids"]
    return LocalModel(
        AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
        lambda text: tokenizer(text, add_special_tokens=False)["input_ids"],
        lambda ids: tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False),
        bos=tokenizer.bos_token_id if ids and ids[0] == tokenizer.bos_token_id else None,
    )


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong with one reply."""

    status: int | None = None
    words: str = "something went wrong"
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    break_off: bool = False  # promise the whole body, send half, hang up
    cut_json: bool = False  # send half a body as if it were whole
    cut_tokens: bool = False  # tell of half the tokens
    drip: float = 0.0  # send a space every so many seconds, and never the body
    garble: Callable[[dict[str, Any]], Any] | None = None  # what is answered instead


@dataclass
class Manners:
    """How a server differs from others that are as compatible as it is."""

    echo: str = (
        "tells"  # or "refuses", "fails" (llama.cpp), "ignores", "nulls" or "shifts" (llama-cpp-python)
    )
    prompt_logprobs: str = "tells"  # or "refuses", "ignores"
    generate: str = "absent"  # or "tells" (SGLang's own path)
    tokenize: str = "absent"  # or "vllm", "llama.cpp"
    chat: str = "absent"  # or "tells"
    completions: str = "tells"  # or "absent"
    prompt_token_listed: str = "first"  # or "last"
    offsets: str = "adds"  # or "minus one" (SGLang)
    lists_generated: bool = True
    tells_usage: bool = True
    models: tuple[str, ...] = ("tiny",)
    about: dict[str, Any] = field(default_factory=dict)  # what is listed of each model beside its name
    api_key: str | None = None
    longest: int = 100_000


class CompletionsServer:
    """Serves on 127.0.0.1 until closed; `script` holds the faults of the coming completions, in order."""

    def __init__(
        self,
        score_tokens: Callable[[Any], Sequence[tuple[Any, ...]]],
        continue_text: Callable[[Any, int], Sequence[tuple[str, float]]] | None = None,
        model: LocalModel | None = None,
        port: int = 0,
        **manners: Any,
    ) -> None:
        self.score_tokens = score_tokens
        self.model = model
        self.continue_text = continue_text or (lambda text, count: [(" .", -1.0)] * count)
        self.manners = Manners(**manners)
        self.script: deque[Fault | None] = deque()
        self.always: Callable[[dict[str, Any]], Fault | None] = lambda body: None
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.busiest = 0
        self._busy = 0
        self._lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # One packet a reply; else every one waits 40 ms for a delayed acknowledgement.
            disable_nagle_algorithm = True
            wbufsize = 1 << 16

            def log_message(self, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                owner._handle(self, {})

            def do_POST(self) -> None:
                owner._handle(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def prompts(self) -> list[str]:
        """The prompts received so far, but for those to be tokenised."""
        return [
            body.get("prompt", body.get("text", body.get("input_ids")))
            for path, _, body in self.requests
            if path in ("/v1/completions", "/generate") and body
        ]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handle(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self._lock:
            self.requests.append((handler.path, headers, body))
            fault = (self.script.popleft() if self.script and body else None) or Fault()
            self._busy += 1
            self.busiest = max(self.busiest, self._busy)
        try:
            status, answer, fault = self._answer(handler.path, headers, body, fault)
            time.sleep(fault.delay)
        finally:
            with self._lock:
                self._busy -= 1
        with contextlib.suppress(OSError):
            _send(handler, status, answer, fault)

    def _answer(
        self, path: str, headers: dict[str, str], body: dict[str, Any], fault: Fault
    ) -> tuple[int, dict[str, Any], Fault]:
        if self.manners.api_key and headers.get("authorization") != f"Bearer {self.manners.api_key}":
            given = headers.get("authorization", "nothing")
            return 401, {"error": {"message": f"Incorrect API key provided: {given}."}}, fault
        if path == "/v1/models":
            return 200, {"data": [{"id": name, **self.manners.about} for name in self.manners.models]}, fault
        if path not in self._paths:
            return 404, {"detail": "Not Found"}, fault
        if body.get("model", self.manners.models[0]) not in self.manners.models:
            return 404, {"message": f"The model `{body['model']}` does not exist.", "object": "error"}, fault
        if fault == Fault():
            fault = self.always(body) or fault
        if fault.status is not None:
            return fault.status, {"error": {"message": fault.words}}, fault
        if path != "/v1/completions":
            return 200, self._paths[path](body, fault), fault
        refusal = self._refusal(body)
        if refusal:
            return *refusal, fault
        return 200, self._complete(body, fault), fault

    @property
    def _paths(self) -> dict[str, Callable[[dict[str, Any], Fault], dict[str, Any]]]:
        """What is answered where."""
        manners = self.manners
        paths: dict[str, Callable[[dict[str, Any], Fault], dict[str, Any]]] = {}
        if manners.completions == "tells":
            paths["/v1/completions"] = self._complete
        if manners.generate == "tells":
            paths["/generate"] = self._generate
        if manners.chat == "tells":
            paths["/v1/chat/completions"] = self._chat
        if manners.tokenize != "absent":
            paths |= {"/tokenize": self._tokenize, "/detokenize": self._detokenize}
        return paths

    def _tokenize(self, body: dict[str, Any], fault: Fault) -> dict[str, Any]:
        assert self.model is not None
        names = ("prompt", "add_special_tokens")
        if self.manners.tokenize == "llama.cpp":
            names = ("content", "add_special")
        text = body.get(names[0], "")
        ids = self.model.ids(text) if body.get(names[1]) else self.model.encode(text)
        return {"tokens": ids} | ({"count": len(ids)} if self.manners.tokenize == "vllm" else {})

    def _detokenize(self, body: dict[str, Any], fault: Fault) -> dict[str, Any]:
        assert self.model is not None
        return {
            "content" if self.manners.tokenize == "llama.cpp" else "prompt": self.model.decode(body["tokens"])
        }

    def _generate(self, body: dict[str, Any], fault: Fault) -> dict[str, Any]:
        """SGLang's own reply: [log-probability, number, text] from a token on, of which the first has none."""
        told = [Told(*token) for token in self.score_tokens(body.get("text") or body["input_ids"])]
        first = body.get("logprob_start_len", -1)
        shown = told[first:] if fault == Fault() or not fault.cut_tokens else told[first : len(told) // 2]
        told_now = [[None if at == 0 else one.logprob, one.id, one.text] for at, one in enumerate(shown)]
        about = {"prompt_tokens": len(told), "completion_tokens": 1, "input_token_logprobs": told_now}
        return {"text": " .", "meta_info": about}

    def _chat(self, body: dict[str, Any], fault: Fault) -> dict[str, Any]:
        said = "\n".join(message["content"] for message in body["messages"])
        added = list(self.continue_text(said, body.get("max_tokens", 16)))
        choice: dict[str, Any] = {
            "message": {"role": "assistant", "content": "".join(token for token, _ in added)}
        }
        if body.get("logprobs"):
            choice["logprobs"] = {"content": [{"token": token, "logprob": p} for token, p in added]}
        return {"object": "chat.completion", "choices": [choice]}

    def _refusal(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if body.get("echo") and self.manners.echo in ("refuses", "fails"):
            status = 400 if self.manners.echo == "refuses" else 500
            return status, {"error": {"code": status, "message": "Only no echo is supported"}}
        if "prompt_logprobs" in body and self.manners.prompt_logprobs == "refuses":
            return 422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "prompt_logprobs"]}]}
        if len(body["prompt"]) > self.manners.longest:
            words = f"This model's maximum context length is {self.manners.longest} characters."
            return 400, {"object": "error", "message": words}
        return None

    def _complete(self, body: dict[str, Any], fault: Fault) -> dict[str, Any]:
        prompt = body["prompt"]
        told = [Told(*token) for token in self.score_tokens(prompt)]
        added = list(self.continue_text(prompt, body.get("max_tokens", 16)))
        usage = {"prompt_tokens": len(told), "completion_tokens": len(added)}
        text = "".join(token for token, _ in added)
        for stop in body.get("stop", ()):
            text = text.partition(stop)[0]
        choice: dict[str, Any] = {"index": 0, "text": text, "logprobs": None, "finish_reason": "length"}
        if fault.cut_tokens:
            told, added = told[: len(told) // 2], []
        if "prompt_logprobs" in body and self.manners.prompt_logprobs == "tells":
            choice["prompt_logprobs"] = [self._candidates(token) for token in told]
        if "logprobs" in body:
            echoed = body.get("echo") and self.manners.echo != "ignores"
            choice["text"] = (prompt if isinstance(prompt, str) else "") * bool(echoed) + text
            choice["logprobs"] = self._logprobs(told if echoed else [], added)
        return {"object": "text_completion", "choices": [choice]} | (
            {"usage": usage} if self.manners.tells_usage else {}
        )

    def _candidates(self, token: Told) -> dict[str, Any] | None:
        """vLLM's entry for a prompt token: itself and the likeliest one, which may be the same."""
        if token.logprob is None or token.best is None:
            return None
        if token.logprob == token.best[1]:
            return {str(token.id): {"logprob": token.logprob, "rank": 1, "decoded_token": token.text}}
        own = (str(token.id), {"logprob": token.logprob, "rank": 5, "decoded_token": token.text})
        best = ("999999", {"logprob": token.best[1], "rank": 1, "decoded_token": token.best[0]})
        return dict([own, best] if self.manners.prompt_token_listed == "first" else [best, own])

    def _logprobs(self, told: list[Told], added: list[tuple[str, float]]) -> dict[str, Any]:
        if self.manners.echo == "shifts" and told:
            told = [one._replace(logprob=-20.0 - place, best=None) for place, one in enumerate(told)]
            told[0] = told[0]._replace(logprob=None)
        elif self.manners.echo == "nulls":
            told = [one._replace(logprob=None, best=None) for one in told]
        end = told[-1].offset + len(told[-1].text) if told else 0
        if self.manners.lists_generated or not told:
            told = told + [Told(text, end, logprob, (text, logprob)) for text, logprob in added]
        adds = self.manners.offsets == "adds"
        return {
            "tokens": [one.text for one in told],
            "text_offset": [one.offset if adds else -1 for one in told],
            "token_logprobs": [one.logprob for one in told],
            "top_logprobs": [
                None
                if one.logprob is None
                else {one.text: one.logprob} | (dict([one.best]) if one.best else {"?": -1.0})
                for one in told
            ],
        }


def _send(handler: BaseHTTPRequestHandler, status: int, answer: dict[str, Any], fault: Fault) -> None:
    data = json.dumps(fault.garble(answer) if fault.garble and status == 200 else answer).encode()
    promised = len(data) // 2 if fault.cut_json else len(data)
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(promised))
    for name, value in fault.headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    for _ in range(promised if fault.drip else 0):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(fault.drip)
    handler.wfile.write(data[: len(data) // 2] if fault.break_off or fault.cut_json else data)
    if fault.break_off:
        handler.wfile.flush()
        handler.close_connection = True


@contextlib.contextmanager
def serving(model: LocalModel, **manners: Any) -> Iterator[CompletionsServer]:
    """A server for a model, closed at the end."""
    server = CompletionsServer(model.score_tokens, model.continue_text, model, **manners)
    try:
        yield server
    finally:
        server.close()
