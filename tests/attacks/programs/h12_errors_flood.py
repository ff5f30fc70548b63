# Ends with errors that are as long as memory allows: a message, a name, a chain, a group, notes, a traceback.
# breach: flood, mem, dead
errors = [ValueError("x" * 20_000_000), type("E" * 1_000_000, (Exception,), {})("y" * 1_000_000)]
errors.append(ExceptionGroup("z" * 1_000_000, [KeyError("k" * 1_000_000) for _ in range(5)]))
for error in errors:
    for _ in range(20):
        error.add_note("n" * 200_000)
for error in errors:
    try:
        raise error
    except Exception as caught:
        import traceback

        print("".join(traceback.format_exception(caught))[:3_000_000])
print("x" * 6_000_000)
raise errors[0] from errors[1]
