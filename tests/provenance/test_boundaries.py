"""Where a value stands by itself in the user's words: parts of names, numbers, dates and hosts are other values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.provenance.test_what_vouches import is_asked, memory

PARTS: dict[str, list[tuple[str, str, Any]]] = {
    "numbers side by side are not one": [
        ("ring 015 257483 21 seconds", "number", "01525748321"),
        ("text 0988-859742 56 lines of it", "number", "098885974256"),
        ("pay 0081331725 64 euros", "account", "008133172564"),
        ("pay DE89 3704 0044 0532 0130 50 euros", "account", "DE89370400440532013050"),
    ],
    "a word is no part of the number behind it": [
        ("book a table from 2026-03-16 15:30", "person", "from2026031615"),
        ("look by 8691466997 up", "path", "by8691466997"),
    ],
    "a folder is not its files": [
        ("clean up violet/!nectar", "path", "violet"),
        ("clean up birch/(old)", "path", "birch"),
        ("archive raven/_kelp", "path", "raven"),
        ("archive raven/.cache", "path", "raven"),
        ("clean up juniper/@cedar", "path", "juniper"),
    ],
    "a name without its ending": [
        ("delete kelp.Acorn.txt", "path", "kelp"),
        ("delete BUDGET.XLSX", "path", "budget"),
        ("write hello to JANA@WILLOW.COM.MX", "to", "jana@willow.com"),
        ("open DELTA.COM.BR", "address", "delta.com"),
    ],
    "an address with a mark": [
        ("write hello to helga@maple.com", "to", "?!helga@maple.com"),
        ("write hello to nils@lotus.com", "to", "!nils@lotus.com, nils@lotus.com"),
        ("write hello to olga@cedar.com", "to", ".olga@cedar.com"),
    ],
    "a word without its vowel signs": [
        ("tell \u0930\u093e\u092e\u093e hello", "person", "\u0930\u093e\u092e"),
        ("write to \u1798\u17c9\u17b6\u179a\u17b8", "person", "\u1798"),
        ("tell \u0905\u092e\u093f\u0924\u093e hello", "path", "\u0905\u092e"),
    ],
    "a group of a number": [
        ("pay 305\u00b710 to them", "amount", 305.0),
        ("pay 616\u066b50 to them", "amount", 616.0),
        ("pay 1'250.50 to them", "amount", 250.5),
        ("pay 8\u02d9769.25 to them", "amount", 8.0),
        ("pay 8\u00b4769.25 to them", "amount", 8.0),
        ("pay 12 345.67 to them", "amount", 345.67),
        ("set the price to \u00a397\u00a0732", "version", "\u00a397"),
        ("set the price to $30 330 please", "version", "$30"),
        ("set the price to 9 887.50\u20ac", "version", "887.50\u20ac"),
    ],
    "a number with a fraction, without its sign or its zeros": [
        ("pay 48\u00b9 euros", "amount", 481.0),
        ("pay 3\u2153 euros", "amount", 31.0),
        ("correct the stock by \u2212799", "quantity", 799),
        ("correct the stock by (429)", "quantity", 429),
        ("my pin is 00028907", "quantity", 28907),
        ("order 39% more pens", "quantity", 39),
    ],
    "a count is no day of a span": [
        ("tickets for June 6 - 13 euros each", "day", "June 13"),
        ("I leave on March 7 and 20 guests come", "day", "20 March"),
        ("from May 5 to 10:30", "day", "May 10"),
    ],
    "a name and a number is no date": [
        ("ask April 5 questions about it", "day", "April 5"),
        ("give June 28 lines of it", "day", "28 June"),
        ("send 5 May flowers at once", "day", "May 5"),
    ],
    "a name with another spelling of its date": [
        ("delete backup May 1 2026", "path", "backup 2026-05-01"),
        ("delete backup 2026-05-01", "path", "backup 1 May 2026"),
        ("delete backup May 10", "path", "backup 10th of May"),
        ("delete backup 4 pm", "path", "backup 16:00"),
    ],
    "a file, a setting or a part of an address is no host": [
        ("load juniper.cu", "url", "http://juniper.cu/"),
        ("tidy sites/yarrow.com/old", "url", "http://yarrow.com"),
        ("look it up on onyx.At noon I leave", "url", "https://onyx.at/"),
        ("set sable.email in the settings", "url", "https://sable.email/"),
        ("write hello to carla.ch@maple.com", "url", "https://carla.ch/"),
    ],
    "another version": [
        ("deploy version 11.9", "version", "11.90"),
        ("deploy version 17.30", "version", "17.3"),
        ("install sable 3.8", "command", "install sable 3.80"),
        ("delete chapter 7", "path", "chapter 7.0"),
        ("deploy version 7", "version", "7.0"),
    ],
    "a mark of prose": [
        ("I see '..' in the list", "path", ".."),
        ("write '~' for about", "path", "~"),
        ("the area is cedar * kelp", "search", "*"),
        ("book a 2 * hotel", "search", "*"),
    ],
    "a part of a name with marks": [
        ("say hello to D'Angelo and go", "person", "angelo"),
        ("say hello to quartz{ivo} and go", "path", "quartz"),
        ("say hello to clover;rosa and go", "path", "clover"),
        ("delete yarrow-_sable for me", "path", "yarrow"),
        ("delete amber:-pebble for me", "path", "amber"),
        ("delete plan.(1).txt for me", "path", "plan"),
    ],
}


@pytest.mark.parametrize("kind", PARTS)
def test_a_part_of_what_the_user_wrote_is_another_value(kind: str) -> None:
    for said, name, value in PARTS[kind]:
        for words in (said, f"Read the page, then {said}.", f"{said}\nThank you"):
            assert is_asked(memory(words), "delete", **{name: value}), (words, value)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("delete docs/", "docs"),
        ("delete 'old plan'.", "old plan"),
        ("write to <bob@corp.com>, please", "bob@corp.com"),
        ("write to ann@corp.com,bob@corp.com", "bob@corp.com"),
        ('take {"to": "bob@corp.com"}', "bob@corp.com"),
        ("ring Ann's office", "ann"),
        ("post it in #general", "general"),
        ("delete **plan.txt**", "plan.txt"),
        ("(see plan.txt)", "plan.txt"),
        ("open www.corp.com/start", "https://www.corp.com"),
        ("open corp.com now", "https://corp.com/"),
        ("pay 12,50 \u20ac", 12.5),
        ("pay 1.250,00 \u20ac", 1250),
        ("pay $50.", 50),
        ("take order #17", 17),
        ("pay 0081331725, please", "0081331725"),
        ("ring 0988-859742", "0988859742"),
        ("meet April 5 at seven", "5 April"),
        ("the May 5 meeting", "May 5"),
        ("on June 3 we come back", "3 June"),
        ("delete backup May 1 2026", "backup May 1 2026"),
        ("see you Monday, May 5 at 10:00", "May 5, 10:00"),
        ("pay 50 to Carl", "50.00"),
    ],
)
def test_a_value_that_stands_by_itself_is_the_users(said: str, value: str | float) -> None:
    assert not is_asked(memory(said), "delete", value=value)
