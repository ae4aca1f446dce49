"""Shuffled versions of a document: blocks of k sentences in another order, none of them twice."""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Iterator, Sequence

# So many orders (those of seven blocks) are listed and drawn from; among more, random ones rarely repeat.
_LISTED = 5040


def blocks_of(count: int, size: int) -> list[range]:
    """Return the sentence numbers of each block; the last block may be shorter."""
    return [range(begin, min(begin + size, count)) for begin in range(0, count, size)]


def order_count(count: int, size: int) -> int:
    """Count the orders of so many sentences in blocks of a size."""
    return math.factorial(len(blocks_of(count, size)))


def document_seed(seed: int, document: str, block_size: int) -> int:
    """Return a seed that depends on the run's seed and the document alone, not on its neighbours or on --limit."""
    digest = hashlib.sha256(f"{seed}\0{document}\0{block_size}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big")


def shuffled_orders(
    sentences: Sequence[str], block_size: int, wanted: int, seed: int, joiner: str = " "
) -> list[tuple[int, ...]]:
    """Draw up to `wanted` distinct block orders whose texts differ from the original and from one another.

    Fewer come back when there are no more: two blocks have one other order.
    """
    blocks = [joiner.join(sentences[i] for i in block) for block in blocks_of(len(sentences), block_size)]
    found: list[tuple[int, ...]] = []
    # Texts are compared, not sentences: "No." and "No. No." in turn read the same either way.
    seen = {joiner.join(blocks)}
    for order in _candidates(len(blocks), wanted, random.Random(seed)):
        if len(found) == wanted:
            break
        text = joiner.join(blocks[i] for i in order)
        if text not in seen:
            seen.add(text)
            found.append(order)
    return found


def _candidates(count: int, wanted: int, generator: random.Random) -> Iterator[tuple[int, ...]]:
    """Yield orders to try, in random sequence: all of them where they can be listed, else as many as make sense."""
    if math.factorial(count) <= max(_LISTED, 4 * wanted):
        orders = list(itertools.permutations(range(count)))
        generator.shuffle(orders)
        yield from orders
        return
    # Repeated sentences can make many orders alike, so trying is bounded.
    tries = min(math.factorial(count), 50 * wanted + 1000)
    order = list(range(count))
    for _ in range(tries):
        generator.shuffle(order)
        yield tuple(order)


def sentence_order(count: int, block_size: int, order: Sequence[int]) -> list[int]:
    """Return the sentence numbers in the shuffled text's order."""
    blocks = blocks_of(count, block_size)
    return [i for block in order for i in blocks[block]]
