#!/usr/bin/env python3
"""Make docs/images/matrix-*.png again: the HTML matrix in a headless Chromium, light and dark, wide and narrow.

    .venv/bin/python tools/matrix-screenshots.py

The adapters are the one in memory and a careless one, so that there is something to see besides green.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
TARGET = "tests.conformance.careless:specs"
OPENED = "JQ-ACK-11"
SIZES = {"wide": (1280, 1500), "narrow": (500, 1760)}
SCHEMES = {"dark": 0, "light": 1}


def main() -> int:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium here; on Debian: apt-get install chromium", file=sys.stderr)
        return 1
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        page = Path(directory) / "matrix.html"
        page.write_text(opened(matrix(page)), encoding="utf-8")
        for size, (width, height) in SIZES.items():
            for scheme, number in SCHEMES.items():
                image = IMAGES / f"matrix-{size}-{scheme}.png"
                shoot(chromium, page, image, f"{width},{height}", number)
                print(image.relative_to(ROOT))
    return 0


def matrix(page: Path) -> str:
    command = [sys.executable, "-m", "conformance", "run", TARGET, "--seed", "7", "--plain", "--html", str(page)]
    # The run is red, and meant to be.
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    return page.read_text(encoding="utf-8")


def opened(text: str) -> str:
    """The page as it stands after two clicks: only what is not met, and one clause open."""
    text = text.replace("<body>", '<body class="only-unmet">').replace('type="checkbox"', 'type="checkbox" checked')
    return text.replace(f'<details id="{OPENED}"', f'<details open id="{OPENED}"')


def shoot(chromium: str, page: Path, image: Path, size: str, scheme: int) -> None:
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                chromium,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--disable-sync",
                "--disable-background-networking",
                "--disable-component-update",
                "--no-first-run",
                "--hide-scrollbars",
                f"--user-data-dir={profile}",
                f"--blink-settings=preferredColorScheme={scheme}",
                f"--window-size={size}",
                f"--screenshot={image}",
                page.as_uri(),
            ],
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=60,
        )


if __name__ == "__main__":
    sys.exit(main())
