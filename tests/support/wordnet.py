"""A small WordNet in the format of the real one."""

from __future__ import annotations

from pathlib import Path

# Of each part of speech its synsets, each the words that share it.
SYNSETS = {
    "noun": [["mill", "grinder"], ["mill", "factory", "manufacturing_plant"], ["wolf"], ["lady", "Dame"]],
    "verb": [["mill", "grind"], ["run", "go"]],
    "adj": [["afraid(p)", "scared"], ["fine"]],
    "adv": [["well"]],
}
IRREGULAR = {"noun": ["wolves wolf"], "verb": ["ran run", "ground grind"], "adj": [], "adv": ["better well"]}
LICENCE = "  1 Words of a small licence, indented as in the real files.\n"


def write_wordnet(folder: Path) -> Path:
    """A database in WordNet's own format, offsets and all."""
    folder.mkdir(parents=True)
    for part, synsets in SYNSETS.items():
        data, index = LICENCE, dict[str, list[int]]()
        for words in synsets:
            offset = len(data.encode())
            listed = " ".join(f"{word} 0" for word in words)
            data += (
                f"{offset:08d} 03 {part[0]} {len(words):02x} {listed} 001 @ 00001740 n 0000 | a gloss; | \n"
            )
            for word in words:
                index.setdefault(word.split("(")[0].lower(), []).append(offset)
        (folder / f"data.{part}").write_text(data)
        lines = [
            f"{word} {part[0]} {len(places)} 2 @ ~ {len(places)} 0 {' '.join(f'{p:08d}' for p in places)}  \n"
            for word, places in sorted(index.items())
        ]
        (folder / f"index.{part}").write_text(LICENCE + "".join(lines))
        (folder / f"{part}.exc").write_text("\n".join(IRREGULAR[part]))
    return folder
