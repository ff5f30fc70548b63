"""Gates of token exchange, of callers' tokens, and of budgets in a file of servers, with the tests that hold each."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["EXCHANGE_GATES"]

_EXCHANGE, _SUBJECTS = "credentials/_token_exchange.py", "_subject_tokens.py"
_OF_EXCHANGE = ("tests/credentials/test_token_exchange.py", "tests/credentials/test_hostile_exchange.py")
_FILE, _OF_FILE = "gateway/_options.py", ("tests/gateway/test_options.py", "tests/gateway/test_servers.py")

EXCHANGE_GATES: tuple[Gate, ...] = (
    Gate(
        "exchange: nobody calls by the name of the client itself",
        _EXCHANGE,
        "        if principal == GATEWAY:\n            raise",
        "        if False:\n            raise",
        _OF_EXCHANGE,
    ),
    Gate(
        "exchange: a token for the token that the caller has now",
        _EXCHANGE,
        "return self.of == of and self.token",
        "return self.token",
        _OF_EXCHANGE,
    ),
    Gate(
        "exchange: a token before its end",
        _EXCHANGE,
        " and self.token.expires_at > time.time() + _EARLY",
        "",
        _OF_EXCHANGE,
    ),
    Gate(
        "exchange: nothing for a caller whose token has ended",
        _EXCHANGE,
        "        if subject is None:\n            return None\n        if stored is not None",
        "        if subject is None and stored is None:\n            return None\n        if stored is not None",
        _OF_EXCHANGE,
    ),
    Gate(
        "exchange: each caller's token is their own",
        _EXCHANGE,
        "        key = principal, server\n",
        '        key = "", server\n',
        _OF_EXCHANGE,
    ),
    Gate(
        "exchange: a refused token is exchanged anew",
        _EXCHANGE,
        "            del self._exchanged[principal, server]\n",
        "            pass\n",
        _OF_EXCHANGE,
    ),
    Gate(
        "exchange: a refusal of the authority is an error of the call",
        _EXCHANGE,
        "except ConsentError as error:",
        "except () as error:",
        _OF_EXCHANGE,
    ),
    Gate(
        "exchange: the address of the server is sent",
        _EXCHANGE,
        'resource = server if self._resource else ""',
        'resource = ""',
        _OF_EXCHANGE,
    ),
    Gate(
        "exchange: an assertion is for the server's own authority",
        _EXCHANGE,
        '**fields, "audience": last.issuer}',
        "**fields}",
        _OF_EXCHANGE,
    ),
    Gate(
        "exchange: an https address",
        _EXCHANGE,
        '(parts.scheme == "https" or (parts.scheme == "http" and is_here))',
        "parts.scheme",
        _OF_EXCHANGE,
    ),
    Gate(
        "callers' tokens: none is kept that nobody exchanges",
        _SUBJECTS,
        "        if not self.is_wanted:\n",
        "        if False:\n",
        _OF_EXCHANGE,
    ),
    Gate("callers' tokens: the end of a token", _SUBJECTS, "if expires_at > time.time():", "if token:", _OF_EXCHANGE),
    Gate("callers' tokens: no more than fit", _SUBJECTS, "if len(self._tokens) > _MOST:", "if False:", _OF_EXCHANGE),
    Gate(
        "callers' tokens: who came last is kept",
        _SUBJECTS,
        "        self._tokens.move_to_end(principal)\n",
        "",
        _OF_EXCHANGE,
    ),
    Gate(
        "callers' tokens: a principal whose token has ended is not listed",
        _SUBJECTS,
        " if self.token_of(principal) is not None)",
        ")",
        _OF_EXCHANGE,
    ),
    Gate(
        "a file's budgets: a limit that counts nothing",
        _FILE,
        "if limit.spend is not None and limit.currency not in listed:",
        "if False:",
        _OF_FILE,
    ),
    Gate(
        "a file's budgets: a limit that is none",
        _FILE,
        "            self.limit()\n",
        "            pass\n",
        _OF_FILE,
    ),
    Gate(
        "a file's budgets: an amount or an argument",
        _FILE,
        "if (self.amount is None) == (self.argument is None):",
        "if False:",
        _OF_FILE,
    ),
    Gate(
        "a file's budgets: the database that cannot be used",
        _FILE,
        "except (DatabaseError, MissingExtraError, OSError) as error:",
        "except () as error:",
        _OF_FILE,
    ),
)
