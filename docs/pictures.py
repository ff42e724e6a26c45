"""Write the pictures in README.md and docs/ from real runs.

They show a page, a statement's page, and snakeviz.

python docs/pictures.py TRACE PAGE
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parent
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
PORT = 8899
WIDTH = 1000


def main(trace: str, page: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        address = Path(page).resolve().as_uri()
        for name, at, scheme, height in (
            ("page", "", "light", 860),
            ("statement", "#/s/2", "dark", 760),
        ):
            view = {"width": WIDTH, "height": height}
            tab = browser.new_context(viewport=view, color_scheme=scheme).new_page()
            tab.goto(address + at)
            tab.wait_for_selector("html[data-ready]")
            tab.screenshot(path=FOLDER / f"{name}.png")
        command = [
            Path(sys.executable).with_name("queryprof"),
            "snakeviz",
            trace,
            "--",
            "-s",
            "-p",
            str(PORT),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            shown = ""
            while "http://" not in shown:
                shown = server.stdout.readline()
                if not shown:
                    sys.exit(f"snakeviz has ended with status {server.wait()}")
            tab = browser.new_page(viewport={"width": WIDTH, "height": 700})
            tab.goto(re.findall(r"http://\S+", shown)[0], wait_until="domcontentloaded")
            tab.wait_for_selector("svg rect, svg path", timeout=60_000)
            tab.screenshot(path=FOLDER / "snakeviz.png")
            server.terminate()


if __name__ == "__main__":
    main(*sys.argv[1:])
