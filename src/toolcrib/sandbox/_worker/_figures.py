"""Figures of matplotlib: what a program shows, or leaves open at its end, becomes an artifact."""

from __future__ import annotations

import sys
from typing import Any, Final

from ._files import FILES, PACKAGE_DATA

_DPI: Final = 100


def prepare() -> None:
    """Save figures where a program shows them, and limit matplotlib to the fonts that it brings."""
    plot, fonts = _plot(), sys.modules.get("matplotlib.font_manager")
    if plot is None or fonts is None:
        return
    manager: Any = fonts.__dict__["fontManager"]
    for fonts_of_kind in (manager.ttflist, manager.afmlist):
        fonts_of_kind[:] = [font for font in fonts_of_kind if font.fname in PACKAGE_DATA]
    figure: Any = sys.modules["matplotlib.figure"].__dict__["Figure"]
    save = figure.savefig

    def savefig(self: Any, *args: Any, **options: Any) -> Any:
        self._is_saved = True
        return save(self, *args, **options)

    figure.savefig = savefig
    figure.show = _show_figure
    plot.show = _show


def save_open() -> None:
    """Save the figures that a program left open and saved nowhere, and close all."""
    plot = _plot()
    if plot is None or not plot.get_fignums():
        return
    for number in plot.get_fignums():
        figure = plot.figure(number)
        if not getattr(figure, "_is_saved", False):
            _save(figure)
    plot.close("all")


def _show(*args: Any, **options: Any) -> None:
    """Show all figures, as artifacts `figure-1.png` and so on, and close them."""
    plot = _plot()
    for number in plot.get_fignums():
        _save(plot.figure(number))
    plot.close("all")


def _show_figure(self: Any, warn: bool = True) -> None:
    """Show the figure, as an artifact."""
    _save(self)


def _save(figure: Any) -> None:
    figure.savefig(FILES.free_name("figure-{}.png"), dpi=_DPI)


def _plot() -> Any:
    return sys.modules.get("matplotlib.pyplot")
