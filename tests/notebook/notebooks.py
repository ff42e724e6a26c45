"""Run cells like a notebook: in a kernel, one after another."""

from __future__ import annotations

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")


def run_cells(directory, cells):
    """Return the outputs of each cell."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    client = nbclient.NotebookClient(
        notebook, allow_errors=True, timeout=120, resources={"metadata": {"path": str(directory)}}
    )
    client.execute()
    return [cell.outputs for cell in notebook.cells]


def shown(outputs, kind="text/html"):
    """Return a cell's outputs of one type, joined."""
    return [one.data[kind] for one in outputs if "data" in one and kind in one.data]


def printed(outputs, name="stdout"):
    return "".join(one.text for one in outputs if one.output_type == "stream" and one.name == name)


def raised(outputs):
    return [f"{one.ename}: {one.evalue}" for one in outputs if one.output_type == "error"]
