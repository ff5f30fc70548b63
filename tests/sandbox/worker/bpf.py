"""A small machine that runs a filter's program the way the kernel does, over a call that a test makes up."""

from __future__ import annotations

import struct
from dataclasses import dataclass

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


@dataclass(frozen=True, slots=True)
class Call:
    """What a filter sees of a system call."""

    number: int
    arguments: tuple[int, ...] = ()
    architecture: int = ARCHITECTURES["x86_64"]

    def encode(self) -> bytes:
        six = (*self.arguments, 0, 0, 0, 0, 0, 0)[:6]
        return struct.pack("<IIQ6Q", self.number, self.architecture, 0, *six)


def verdict(program: bytes, call: Call) -> int:
    """Return what the program says of a call; a jump past its end or an unknown operation is an IndexError."""
    seen = call.encode()
    steps = list(struct.iter_unpack("<HBBI", program))
    at, register = 0, 0
    while True:
        code, then, otherwise, constant = steps[at]
        at += 1
        if code == 0x06:
            return constant
        if code == 0x20:
            (register,) = struct.unpack_from("<I", seen, constant)
        elif code == 0x54:
            register &= constant
        else:
            holds = {0x15: register == constant, 0x35: register >= constant, 0x45: bool(register & constant)}[code]
            at += then if holds else otherwise
