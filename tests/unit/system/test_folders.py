"""Only folders with our mark are cleared, and only known files in them."""

import io
import os
import shutil
import tempfile

import numpy as np
import pytest

import sapwood as sw
from sapwood.errors import DataError
from sapwood.system import folders

BATCHES = [(np.arange(40.0).reshape(20, 2), np.arange(20.0))]


def build(store):
    return sw.Dataset.from_batches(BATCHES, store=store)


@pytest.fixture
def docs(tmp_path):
    """A folder of a user."""
    folder = tmp_path / "docs"
    (folder / "chapters").mkdir(parents=True)
    (folder / "thesis.txt").write_text("years of work")
    (folder / "chapters" / "1").write_text("the first chapter")
    return folder


def check_whole(docs):
    assert (docs / "thesis.txt").read_text() == "years of work"
    assert (docs / "chapters" / "1").read_text() == "the first chapter"


def test_a_folder_of_a_user_is_not_cleared(tmp_path, docs):
    os.rename(docs, tmp_path / "s.store.building")
    with pytest.raises(DataError, match="not of Sapwood"):
        build(tmp_path / "s.store")
    check_whole(tmp_path / "s.store.building")


def test_a_link_to_a_folder_of_a_user_is_not_followed(tmp_path, docs):
    os.symlink(docs, tmp_path / "s.store.building")
    with pytest.raises(DataError, match="not a folder of Sapwood"):
        build(tmp_path / "s.store")
    check_whole(docs)


def test_a_file_of_a_user_in_an_unfinished_store_is_not_removed(tmp_path):
    building = tmp_path / "s.store.building"
    folders.make_marked(building)
    (building / "codes").write_bytes(b"half")
    (building / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match=r"notes\.txt"):
        build(tmp_path / "s.store")
    assert (building / "notes.txt").read_text() == "mine"
    assert (building / "codes").read_bytes() == b"half"


@pytest.mark.parametrize(
    "name", ["codes", "label", "dataset", "learned", "journal", "lock"]
)
def test_a_planted_link_in_an_unfinished_store_is_not_followed(tmp_path, docs, name):
    building = tmp_path / "s.store.building"
    folders.make_marked(building)
    os.symlink(docs / "thesis.txt", building / name)
    with pytest.raises((DataError, OSError)):
        build(tmp_path / "s.store")
    check_whole(docs)


def test_the_spool_of_another_is_not_followed(tmp_path, docs):
    building = tmp_path / "s.store.building"
    folders.make_marked(building)
    os.symlink(docs / "chapters", building / "spool")
    with pytest.raises(DataError):
        build(tmp_path / "s.store")
    check_whole(docs)


def test_a_mark_that_is_a_link_is_no_mark(tmp_path):
    folders.make_marked(tmp_path / "ours")
    (tmp_path / "other").mkdir()
    os.symlink(tmp_path / "ours" / folders.MARK, tmp_path / "other" / folders.MARK)
    assert folders.is_marked(tmp_path / "ours")
    assert not folders.is_marked(tmp_path / "other")


def test_what_a_killed_build_left_is_replaced(tmp_path):
    building = tmp_path / "s.store.building"
    folders.make_marked(building)
    (building / "spool").mkdir()
    for name in ("codes", "label", "lock", "spool/0", ".sapwood-0123456789abcdef.part"):
        (building / name).write_bytes(b"half")
    data = build(tmp_path / "s.store")
    assert data.n_rows == 20
    assert sorted(os.listdir(tmp_path)) == ["s.store"]
    assert "codes" in os.listdir(tmp_path / "s.store")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a folder away")
def test_a_folder_of_another_user_is_not_used(tmp_path):
    building = tmp_path / "s.store.building"
    folders.make_marked(building)
    (building / "codes").write_bytes(b"half")
    os.chown(building, 12345, 12345)
    with pytest.raises(DataError, match="another user"):
        build(tmp_path / "s.store")
    assert (building / "codes").read_bytes() == b"half"


@pytest.mark.parametrize(
    "name", ["dataset", "codes", "label", "journal", "learned", "lock"]
)
@pytest.mark.parametrize("kind", ["link", "hard link", "pipe"])
def test_what_is_planted_in_an_unfinished_build_is_refused(tmp_path, docs, name, kind):
    building = tmp_path / "s.store.building"
    folders.make_marked(building)
    if kind == "pipe":
        os.mkfifo(building / name)
    else:
        (os.symlink if kind == "link" else os.link)(
            docs / "thesis.txt", building / name
        )
    with pytest.raises(DataError, match=name):
        build(tmp_path / "s.store")
    check_whole(docs)


def test_a_folder_that_was_copied_has_no_mark(tmp_path):
    folders.make_marked(tmp_path / "ours")
    shutil.copytree(tmp_path / "ours", tmp_path / "s.store.building")
    assert not folders.is_marked(tmp_path / "s.store.building")
    with pytest.raises(DataError, match="not of Sapwood"):
        build(tmp_path / "s.store")


def test_a_store_whose_label_is_a_pipe_is_refused(tmp_path):
    build(tmp_path / "s.store")
    (tmp_path / "s.store" / "label").unlink()
    os.mkfifo(tmp_path / "s.store" / "label")
    with pytest.raises(DataError, match="not a file"):
        sw.Dataset.open(tmp_path / "s.store")


def test_a_copy_of_standard_input_has_no_name_that_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    copy = folders.temporary_copy(io.BytesIO(b"rows"), ".csv")
    assert copy.path.read_bytes() == b"rows"
    assert os.listdir(tmp_path) == [] or not os.path.isdir(folders.OPEN_FILES)
    copy.remove()
    assert os.listdir(tmp_path) == []


def test_an_empty_folder_is_used(tmp_path):
    (tmp_path / "s.store.building").mkdir()
    assert build(tmp_path / "s.store").n_rows == 20
