"""A picture of how medians grow with the number of memories: an SVG without anything but lines and words."""

import math
from collections.abc import Mapping, Sequence

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 720, 360, 56, 40, 230, 44
_COLOURS = ("#1f6feb", "#bf5700", "#2d7d46", "#8250df")

Points = Sequence[tuple[int, float]]


def draw(title: str, lines: Mapping[str, Points]) -> str:
    """Return the SVG of some lines over both axes' logarithms."""
    points = [point for line in lines.values() for point in line]
    sizes, values = sorted({size for size, _ in points}), [value for _, value in points]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    plot_width, plot_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    span = math.log10(sizes[-1] / sizes[0]) or 1.0

    def x(size: int) -> float:
        return _LEFT + plot_width * math.log10(size / sizes[0]) / span

    def y(value: float) -> float:
        return _TOP + plot_height * (high - math.log10(value)) / ((high - low) or 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12" fill="#57606a">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="20" font-size="14" fill="#1f2328">{title}</text>',
    ]
    for power in range(low, high + 1):
        parts.append(_line(_LEFT, y(10**power), _LEFT + plot_width, y(10**power)))
        parts.append(f'<text x="{_LEFT - 6}" y="{y(10**power) + 4:.1f}" text-anchor="end">{10**power:g}</text>')
    for size in sizes:
        parts.append(_line(x(size), _TOP, x(size), _TOP + plot_height))
        parts.append(f'<text x="{x(size):.1f}" y="{_HEIGHT - 22}" text-anchor="middle">{size:,}</text>')
    for colour, (name, line) in zip(_COLOURS, lines.items(), strict=False):
        path = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x(size):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}"/>' for size, value in line]
        number = list(lines).index(name)
        parts.append(f'<text x="{_WIDTH - _RIGHT + 12}" y="{_TOP + 14 + 40 * number}" fill="{colour}">{name}</text>')
        told = " · ".join(f"{value:.1f}" for _, value in line)
        parts.append(f'<text x="{_WIDTH - _RIGHT + 12}" y="{_TOP + 30 + 40 * number}">{told}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#d0d7de"/>'
