"""``holdfast categories``: what it lists, and how it refuses what does not exist."""

from __future__ import annotations

from holdfast.cli.render.catalogue import category_table, kind_table
from holdfast.wire.entries import CategoryView

OWN = CategoryView(name="mine", spec={"precedence": 3, "hint": "ask Ann", "rules": [{"onLog": {"pattern": "x"}}]})
GPU = CategoryView(
    name="gpu",
    spec={"precedence": 1_000_000, "rules": [{"subcategory": "ecc", "hint": "Move.", "suggestedAction": "Retry"}]},
    built_in=True,
)


def test_every_kind_of_failure_is_a_row_with_what_to_do() -> None:
    assert kind_table([OWN, GPU])[1] == [
        ("mine", "you", "", "ask Ann"),
        ("gpu/ecc", "built-in", "Retry", "Move."),
    ]


def test_categories_say_whose_they_are() -> None:
    assert category_table([OWN, GPU])[1] == [
        ("mine", "you", "3", "1", "", "ask Ann"),
        ("gpu", "built-in", "1000000", "1", "ecc", ""),
    ]
