"""Only folders with our mark are cleared, and only known files in them."""

import os

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


@pytest.mark.parametrize("name", ["codes", "label", "dataset", "learned", "journal", "lock"])
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


def test_an_empty_folder_is_used(tmp_path):
    (tmp_path / "s.store.building").mkdir()
    assert build(tmp_path / "s.store").n_rows == 20
