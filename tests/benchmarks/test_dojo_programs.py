"""Programs of a replay: what is a literal, what is taken from a result, and where the next program begins."""

from benchmarks.dojo._programs import program_of, programs


def test_a_value_is_the_users_or_is_taken_from_a_result_or_begins_another_program() -> None:
    calls = [
        ("read", {"path": "bill.txt"}),
        ("contacts", {}),
        ("pay", {"iban": "GB29", "amount": 98.7, "to": ["bob@corp.com"], "subject": ""}),
        ("pay", {"iban": "DE89", "amount": 1200}),
    ]
    results = ["Pay 98.7 to GB29", [{"mail": "bob@corp.com"}], "paid", "paid"]
    made = programs(calls, results, "Pay the bill in bill.txt")
    assert [len(each) for each in made] == [3, 1]
    assert [line for line in program_of(made[0]).splitlines() if "= " in line and "str" not in line] == [
        "    r0 = read(path='bill.txt')",
        "    r1 = contacts()",
        "    r2 = pay(iban=r0[12:16], amount=float(r0[4:8]), to=[r1[0]['mail']], subject='')",
    ]
    assert "r0 = pay(iban='DE89', amount=1200)" in program_of(made[1])
