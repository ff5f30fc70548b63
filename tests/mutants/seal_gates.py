"""The layers that keep a worker in, and the self-test that tries each of them before anything else runs.

The mount namespace has no mutant: without it the empty root would be made in the tests' own.
"""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["SEAL_GATES"]

_SEAL = "sandbox/_worker/_seal.py"
_FILTER = "sandbox/_worker/_seccomp.py"
_LANDLOCK = "sandbox/_worker/_landlock.py"
_LIMITS = "sandbox/_worker/_limits.py"
_SPACES = "sandbox/_worker/_namespaces.py"
_SELF_TEST = "sandbox/_worker/_selftest.py"

_OF_SEAL = ("tests/sandbox/test_seal.py",)
_OF_PROGRAM = ("tests/sandbox/test_sealed_program.py",)
_OF_MONTY = ("tests/sandbox/test_monty.py",)
_OF_GROUPS = ("tests/sandbox/test_control_group.py", "tests/sandbox/test_launch.py")
_OF_LAUNCH = ("tests/sandbox/test_launch.py",)
_OF_FILTER = ("tests/sandbox/worker/test_seccomp.py", *_OF_SEAL)
_OF_LIMITS = ("tests/sandbox/worker/test_limits.py", *_OF_SEAL)

SEAL_GATES: tuple[Gate, ...] = (
    # --- around the zygote
    Gate(
        "no new privileges",
        _SEAL,
        'self._layer("no_new_privs", lambda: prctl(38, 1))',
        'self._layer("no_new_privs", lambda: 0)',
        _OF_SEAL,
    ),
    Gate(
        "paths of the host in modules",
        "sandbox/_worker/_zygote.py",
        "        forget_paths()\n",
        "        pass\n",
        ("tests/sandbox/test_process.py",),
    ),
    Gate("limits of other processes", _FILTER, "_both(_one_of(0, (0,)), _null(2))", "_null(2)", _OF_FILTER),
    Gate("a process namespace of its own", _SPACES, "(_PROCESSES if processes else 0)", "0", _OF_SEAL),
    Gate("a network of its own", _SPACES, "| 0x40000000 |", "|", _OF_SEAL),
    Gate(
        "an empty root",
        _SEAL,
        'self._layer("empty_root", lambda: _namespaces.empty_root(libraries))',
        'self._layer("empty_root", lambda: None)',
        _OF_SEAL,
    ),
    Gate(
        "dropped root",
        _SEAL,
        'self._layer("dropped_root", _namespaces.become_nobody)',
        'self._layer("dropped_root", lambda: None)',
        _OF_SEAL,
    ),
    Gate(
        "dropped capabilities",
        _SEAL,
        'self._layer("no_capabilities", _namespaces.drop_capabilities)',
        'self._layer("no_capabilities", lambda: None)',
        _OF_SEAL,
    ),
    Gate("an empty environment", _SEAL, "os.environ.clear()", "pass", _OF_SEAL),
    # --- around a worker
    Gate("Landlock", _SEAL, "_landlock.restrict(self._ruleset)", "pass", _OF_SEAL),
    Gate(
        "files under Landlock",
        _LANDLOCK,
        "files = (1 << _FILE_RIGHTS[min(known, max(_FILE_RIGHTS))]) - 1",
        "files = 0",
        _OF_SEAL,
    ),
    Gate(
        "ports under Landlock",
        _LANDLOCK,
        "_BIND_AND_CONNECT: Final = 0b11",
        "_BIND_AND_CONNECT: Final = 0b01",
        _OF_SEAL,
    ),
    Gate(
        "signals under Landlock",
        _LANDLOCK,
        "_ABSTRACT_SOCKETS_AND_SIGNALS: Final = 0b11",
        "_ABSTRACT_SOCKETS_AND_SIGNALS: Final = 0b01",
        _OF_SEAL,
    ),
    Gate(
        "abstract sockets under Landlock",
        _LANDLOCK,
        "_ABSTRACT_SOCKETS_AND_SIGNALS: Final = 0b11",
        "_ABSTRACT_SOCKETS_AND_SIGNALS: Final = 0b10",
        _OF_SEAL,
    ),
    Gate(
        "closed descriptors",
        _SEAL,
        "for descriptor in (*descriptors, _ALL_DESCRIPTORS):",
        "for descriptor in descriptors:",
        _OF_SEAL,
    ),
    Gate("standard descriptors", _SEAL, "            first = 0\n", "            first = CHANNEL\n", _OF_SEAL),
    # --- around a program that was not made for it
    Gate("the seal of Monty's workers", "sandbox/_monty.py", "binary_path=seal.command", "binary_path=None", _OF_MONTY),
    Gate(
        "layers that a later start lacks",
        "sandbox/_worker/_next_program.py",
        "state == ON and not seal.on(layer)",
        "False",
        _OF_PROGRAM,
    ),
    Gate(
        "code from files alone",
        _FILTER,
        "*_both(_none_of_bits(2, _WRITABLE), _none_of_bits(3, _ANONYMOUS)),",
        "*_verdict(ALLOW),",
        _OF_FILTER,
    ),
    Gate("files that are read alone", _FILTER, "_none_of_bits(2, _WRITING)", "_verdict(ALLOW)", _OF_FILTER),
    Gate("the error stream of the host", "sandbox/_worker/_next_program.py", "os.dup2(silent, 2)", "pass", _OF_PROGRAM),
    # --- the filter of system calls
    Gate("the filter", _SEAL, "            self._filter.load()\n", "            pass\n", _OF_SEAL),
    Gate(
        "calls of the system that are not listed",
        _FILTER,
        "rest = [*_verdict(ALLOW), *_verdict(_DENY), *rest, *_verdict(_DENY)]",
        "rest = [*_verdict(ALLOW), *_verdict(_DENY), *rest, *_verdict(ALLOW)]",
        _OF_SEAL,
    ),
    Gate("hostile calls of the system", _FILTER, "for numbers in HOSTILE.values():", "for numbers in ():", _OF_SEAL),
    Gate(
        "calls of another architecture",
        _FILTER,
        "Instruction(_IF_EQUAL, audit, 1, 0)",
        "Instruction(_IF_EQUAL, audit, 1, 1)",
        _OF_FILTER,
    ),
    Gate("calls of x32", _FILTER, '[] if machine != "x86_64" else', "[] if machine else", _OF_SEAL),
    Gate("threads and no processes", _FILTER, '"clone": _one_of(0, _NEW_THREAD)', '"clone": _verdict(ALLOW)', _OF_SEAL),
    Gate(
        "flags of a process that lie in memory",
        _FILTER,
        '"clone3": _verdict(failing(errno.ENOSYS))',
        '"clone3": _verdict(ALLOW)',
        _OF_FILTER,
    ),
    Gate(
        "signals to itself",
        _FILTER,
        "Instruction(_IF_EQUAL, process, 0, 1)",
        "Instruction(_IF_EQUAL, process, 0, 0)",
        _OF_FILTER,
    ),
    Gate(
        "a kill of a program by itself",
        _FILTER,
        "Instruction(_IF_EQUAL, _SIGKILL, 3, 0)",
        "Instruction(_IF_EQUAL, _SIGKILL, 0, 0)",
        _OF_FILTER,
    ),
    Gate(
        "memory that can be run",
        _FILTER,
        '"mmap": _none_of_bits(2, _EXECUTABLE)',
        '"mmap": _verdict(ALLOW)',
        _OF_FILTER,
    ),
    Gate(
        "memory that becomes code",
        _FILTER,
        '"mprotect": _none_of_bits(2, _EXECUTABLE)',
        '"mprotect": _verdict(ALLOW)',
        _OF_FILTER,
    ),
    Gate(
        "limits that are lowered or raised",
        _FILTER,
        '"prlimit64": _both(_one_of(0, (0,)), _null(2))',
        '"prlimit64": _one_of(0, (0,))',
        _OF_FILTER,
    ),
    Gate(
        "the kind of a pair of sockets",
        _FILTER,
        '"socketpair": _both(_one_of(0, (1,)), _one_of(1, (1,), mask=0xF))',
        '"socketpair": _verdict(ALLOW)',
        _OF_FILTER,
    ),
    # --- limits of the kernel
    Gate("limits of the kernel", _SEAL, "limit(limits, mapped, counts_apart=self._counts_apart)", "pass", _OF_SEAL),
    Gate("seconds of a worker", _LIMITS, '        "RLIMIT_CPU": limits.cpu,\n', "", _OF_SEAL),
    Gate("memory of a worker", _LIMITS, '        "RLIMIT_AS": mapped + limits.memory,\n', "", _OF_LIMITS),
    Gate("descriptors of a worker", _LIMITS, '        "RLIMIT_NOFILE": DESCRIPTORS,\n', "", _OF_SEAL),
    Gate("files of a worker", _LIMITS, '        "RLIMIT_FSIZE": 0,\n', "", _OF_SEAL),
    Gate("dumps of a worker", _LIMITS, '        "RLIMIT_CORE": 0,\n', "", _OF_SEAL),
    Gate("locked memory of a worker", _LIMITS, '        "RLIMIT_MEMLOCK": 0,\n', "", _OF_SEAL),
    Gate("message queues of a worker", _LIMITS, '        "RLIMIT_MSGQUEUE": 0,\n', "", _OF_SEAL),
    Gate(
        "threads of a worker in the kernel",
        _LIMITS,
        '{"RLIMIT_NPROC": THREADS_IN_KERNEL} if counts_apart else {}',
        "{}",
        _OF_LIMITS,
    ),
    Gate(
        "threads of each worker counted apart",
        _SEAL,
        "            _namespaces.count_threads_apart()\n",
        "            raise OSError\n",
        _OF_SEAL,
    ),
    Gate(
        "a control group of its own",
        "sandbox/_worker/_control_groups.py",
        "            _join(folder, limits)\n",
        "            pass\n",
        _OF_GROUPS,
    ),
    Gate(
        "a control group that is removed",
        "sandbox/_worker/_control_groups.py",
        "        _leave_remover(created, channel)\n",
        "        pass\n",
        _OF_GROUPS,
    ),
    Gate("a limit that nobody raises", _LIMITS, "(min(value, hard), hard)", "(min(value, hard), most)", _OF_SEAL),
    # --- the self-test
    Gate(
        "the self-test of each layer",
        _SELF_TEST,
        "if seal.on(layer) and not holds():",
        "if False:",
        _OF_LAUNCH,
    ),
    Gate(
        "the self-test of the filter",
        _SELF_TEST,
        '        if seal.on("seccomp"):\n',
        "        if False:\n",
        _OF_LAUNCH,
    ),
    # --- whoever is left
    Gate(
        "a worker that outlives its zygote",
        _SEAL,
        "            prctl(1, signal.SIGKILL)\n",
        "            pass\n",
        _OF_LAUNCH,
    ),
)
