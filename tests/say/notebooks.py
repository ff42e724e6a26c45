"""Runs cells as a notebook does: in a kernel, one after another."""

from __future__ import annotations

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")


def run_cells(directory, cells, **ids):
    """The outputs of each cell. `ids`: by a cell's place, `_3`, an id that a front end gives it."""
    made = [nbformat.v4.new_code_cell(text) for text in cells]
    for place, name in ids.items():
        made[int(place.strip("_"))].id = name
    notebook = nbformat.v4.new_notebook(cells=made)
    client = nbclient.NotebookClient(
        notebook, allow_errors=True, timeout=120, resources={"metadata": {"path": str(directory)}}
    )
    client.execute()
    return [cell.outputs for cell in notebook.cells]


def shown(outputs, kind="text/html"):
    """What a cell displays of a kind, one after another."""
    return [one.data[kind] for one in outputs if "data" in one and kind in one.data]


def printed(outputs, name="stdout"):
    return "".join(one.text for one in outputs if one.output_type == "stream" and one.name == name)


def raised(outputs):
    return [f"{one.ename}: {one.evalue}" for one in outputs if one.output_type == "error"]
