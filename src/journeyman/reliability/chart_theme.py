"""How every chart looks: quiet, in one colour, readable in small. What a chart shows is left to
`charts`, which applies this when it draws.
"""

# Okabe and Ito's blue, which people who see colours differently tell from grey and from each other
# colour.
ACCENT = "#0072b2"
INK = "#222222"
QUIET = "#595959"
FAINT = "#d0d0d0"

THEME = {
    "background": "#ffffff",
    "font": "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif",
    "padding": 16,
    # As in every sentence: 8 %, not 8%.
    "locale": {
        "number": {
            "decimal": ".",
            "thousands": ",",
            "grouping": [3],
            "currency": ["", ""],
            "percent": "\N{NO-BREAK SPACE}%",
        }
    },
    "title": {
        "anchor": "start",
        "frame": "bounds",
        "color": INK,
        "fontSize": 16,
        "subtitleColor": QUIET,
        "subtitleFontSize": 12,
        "subtitleLineHeight": 17,
        "subtitlePadding": 5,
        "offset": 14,
    },
    "axis": {
        "labelColor": INK,
        "labelFontSize": 12,
        "titleColor": QUIET,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "domainColor": FAINT,
        "tickColor": FAINT,
        "gridColor": "#ececec",
        "grid": False,
    },
    "view": {"stroke": None},
}
"""In the words of Vega-Lite's configuration."""
