"""Word indexes: how each kind of database finds the activities whose texts have words with given beginnings."""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolcrib.database import StoreTables

_WORD = re.compile("[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class WordIndex:
    """The search of activities by words in one kind of database.

    Attributes:
        tables: The index.
        source: The table to select from.
        condition: True of activities that have the words of a query, which stands for `?`.
        order: The column that says in which order they began.
        whole: How a query has a whole word, in place of `{}`.
        start: How a query has the beginning of a word.
        glue: The operator between two words.
        left_out: The status of activities that are not in it, and are few; empty where all are.
    """

    tables: StoreTables
    source: str
    condition: str
    order: str
    whole: str
    start: str
    glue: str
    left_out: str = ""

    def query(self, text: str) -> str:
        """Return the query for a text in lower case; empty where the index cannot help.

        It finds more than the text: a caller looks for the text itself in what was found.
        """
        if not text.isascii():
            return ""  # the words of many scripts have no spaces between them
        parts = [_WORD.findall(part) for part in text.split()]
        words = [self.whole.format(word) for part in parts for word in part[:-1]]
        return self.glue.join([*words, *(self.start.format(part[-1]) for part in parts if part)])


SQLITE_WORDS = WordIndex(
    StoreTables(
        "words",
        (
            (
                """CREATE VIRTUAL TABLE IF NOT EXISTS toolcrib_words USING fts5 (words, content='toolcrib_activities',
            content_rowid='first_position', tokenize='ascii', detail=none, columnsize=0)""",
                """CREATE TRIGGER IF NOT EXISTS toolcrib_words_made AFTER INSERT ON toolcrib_activities BEGIN
            INSERT INTO toolcrib_words (rowid, words) VALUES (new.first_position, new.words); END""",
                """CREATE TRIGGER IF NOT EXISTS toolcrib_words_gone AFTER DELETE ON toolcrib_activities BEGIN
            INSERT INTO toolcrib_words (toolcrib_words, rowid, words)
            VALUES ('delete', old.first_position, old.words); END""",
                """CREATE TRIGGER IF NOT EXISTS toolcrib_words_more AFTER UPDATE OF words ON toolcrib_activities
            WHEN old.words <> new.words BEGIN
            INSERT INTO toolcrib_words (toolcrib_words, rowid, words)
            VALUES ('delete', old.first_position, old.words);
            INSERT INTO toolcrib_words (rowid, words) VALUES (new.first_position, new.words); END""",
                "INSERT INTO toolcrib_words (toolcrib_words) VALUES ('rebuild')",  # with what was kept before
            ),
        ),
    ),
    "toolcrib_words CROSS JOIN toolcrib_activities ON first_position = toolcrib_words.rowid",  # the words first
    "toolcrib_words MATCH ?",
    "toolcrib_words.rowid",
    '"{}"',
    '"{}"*',
    " AND ",
)
"""The index of a SQLite file, by its module FTS5."""

_VECTOR = "to_tsvector('simple', regexp_replace(words, '[^a-z0-9]+', ' ', 'g'))"
POSTGRES_WORDS = WordIndex(
    StoreTables(
        "words",
        (
            (f"CREATE INDEX IF NOT EXISTS toolcrib_activities_words ON toolcrib_activities USING gin (({_VECTOR}))",),
            ("ALTER TABLE toolcrib_activities SET (fillfactor = 50)",),  # a row is written twice
            (
                "DROP INDEX toolcrib_activities_words",
                f"""CREATE INDEX toolcrib_activities_words ON toolcrib_activities
                    USING gin (({_VECTOR})) WHERE status <> 'running'""",  # whose words would enter it twice
            ),
        ),
    ),
    "toolcrib_activities",
    f"{_VECTOR} @@ to_tsquery('simple', ?)",
    "first_position",
    "{}",
    "{}:*",
    " & ",
    left_out="running",
)
"""The index of a Postgres server, by its text search."""
