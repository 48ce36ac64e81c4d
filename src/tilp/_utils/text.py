"""Numbers as people read them."""


def percent(share: float) -> str:
    """Return a share in percent; what is above 0 never reads 0 %, what is below 1 never 100 %."""
    if share < 0.005:
        return "under 1 %"
    return "over 99 %" if share > 0.995 else f"{100 * share:.0f} %"
