"""Draw the model of docs/explain.md with the shap package: python docs/plots/explain.py
(needs matplotlib and shap).

In: the code of that page. Out: waterfall.svg and beeswarm.svg beside this file.
"""

import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import shap

FOLDER = Path(__file__).resolve().parent


def main() -> None:
    """Run the first blocks of the page, and draw what they leave."""
    plt.rcParams.update({"svg.hashsalt": "sapwood", "figure.figsize": (7, 3)})
    page: dict[str, Any] = {}
    blocks = re.findall(
        r"```python\n(.*?)```", (FOLDER.parent / "explain.md").read_text(), re.DOTALL
    )
    exec("\n".join(blocks[:2]), page)
    told = page["told"].to_shap()
    for name, drawing in (("waterfall", told[0]), ("beeswarm", told[:200])):
        getattr(shap.plots, name)(drawing, show=False)
        plt.savefig(
            FOLDER / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight"
        )
        plt.close()


if __name__ == "__main__":
    main()
