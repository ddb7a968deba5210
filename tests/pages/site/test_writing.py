"""`gcon site`: files in a folder, whole or not at all, and nobody's other files are touched."""

import json

import pytest
from tests.pages.site.models import moments, nodes, paper

from gcon.errors import InputError
from gcon.pages.build import site_pages
from gcon.pages.frame import PAGES
from gcon.pages.write import write_site
from gcon.release.store import save_release


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "model"
    save_release(paper(), folder)
    return folder


@pytest.fixture
def table(tmp_path):
    given = nodes()
    split = ["train"] * 30 + ["val"] * 30 + ["test"] * 30
    lines = [
        f'{place},"{given.class_names[int(label)]}",{kind},' + ",".join(map(str, row))
        for place, (label, kind, row) in enumerate(zip(given.labels, split, given.features.tolist(), strict=True))
    ]
    path = tmp_path / "nodes.csv"
    path.write_text("\n".join(["id,label,split,a,b,c,d", *lines]) + "\n")
    return path


def test_the_pages_are_written_and_written_again(run, release, table, tmp_path):
    out = tmp_path / "deep" / "pages"
    code, printed, _ = run("site", release, "--out", out, "--nodes", table)
    assert code == 0
    assert printed.splitlines() == [f"Written: {out / name}" for name in PAGES]
    assert sorted(path.name for path in out.iterdir()) == sorted(PAGES)
    assert 'class="heat"' in (out / "model.html").read_text()
    code, printed, _ = run("site", release, "--out", out, "--service", "https://answers.example.org/", "--me", "--json")
    assert code == 0
    assert json.loads(printed) == {
        "out": str(out),
        "pages": list(PAGES),
        "service": "https://answers.example.org",
        "promise": True,
    }
    assert "connect-src https://answers.example.org" in (out / "ask.html").read_text()
    assert 'class="heat"' not in (out / "model.html").read_text()
    assert sorted(path.name for path in out.iterdir()) == sorted(PAGES)
    assert run("site", release, "--out", out, "--quiet") == (0, "", "")


def test_wrong_inputs(run, release, tmp_path):
    out = tmp_path / "pages"
    for words, code, said in (
        ((tmp_path / "nothing", "--out", out), 6, "it must be a release folder"),
        ((release, "--out", out, "--service", "http://example.org"), 2, "must use https"),
        ((release, "--out", out, "--me"), 2, "say what a service can do"),
        ((release, "--out", out, "--nodes", tmp_path / "none.csv"), 2, "must be a file that exists"),
        ((release,), 2, "--out"),
    ):
        found, printed, _ = run("site", *words, "--json")
        assert (found, json.loads(printed)["exit_code"]) == (code, code)
        assert said in json.loads(printed)["message"]
        assert not out.exists()


@pytest.mark.parametrize("name", ["notes.txt", ".hidden", "index.html", "model.html"])
def test_other_things_in_the_folder_are_left_alone(run, release, tmp_path, name):
    out = tmp_path / "pages"
    out.mkdir()
    (out / name).write_text("mine")
    code, _, said = run("site", release, "--out", out)
    assert code == 2
    assert f"must be empty or hold nothing but pages of gcon site; got {out} with {name}" in said
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).read_text() == "mine"


def test_a_file_or_a_link_is_no_folder(release, tmp_path):
    pages = site_pages(moments())
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("file", "link"):
        with pytest.raises(InputError, match="out: must be a folder"):
            write_site(pages, tmp_path / name)
    assert (tmp_path / "file").read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()


def test_a_page_that_is_a_link_is_not_followed(tmp_path):
    pages, out = site_pages(moments()), tmp_path / "pages"
    write_site(pages, out)
    (tmp_path / "real.html").write_text(pages["index.html"])
    (out / "index.html").unlink()
    (out / "index.html").symlink_to(tmp_path / "real.html")
    with pytest.raises(InputError, match=r"with index\.html"):
        write_site(pages, out)


def test_a_write_that_fails_leaves_the_old_page(tmp_path, monkeypatch):
    out, old, new = tmp_path / "pages", site_pages(moments(1.0)), site_pages(moments(2.0))
    write_site(old, out)

    def full(*_):
        raise OSError(28, "no space left")

    monkeypatch.setattr("gcon.writing.os.replace", full)
    with pytest.raises(InputError, match="must be a folder that can be written to"):
        write_site(new, out)
    assert {path.name: path.read_text() for path in out.iterdir()} == old
