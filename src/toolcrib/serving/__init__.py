"""What every server needs: principals, limits, suspended calls kept for a later request, single flight, HTTP checks."""

__all__: list[str] = []
