"""Several settings from few words."""

import pytest

from regard.tasks.sweep import expand_sweep, seed_groups


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.toml").write_text('[model]\nkind = "luong"\ndim = 8\n')
    (tmp_path / "search.toml").write_text('[model]\nkind = "rnnsearch"\n')
    (tmp_path / "classes.toml").write_text('task = "classify"\n')
    return tmp_path


def test_configs_and_changes(folder):
    found = expand_sweep(["base.toml", "search.toml", "model.dim=4", "data.size=7"])
    assert list(found) == ["base", "search"]
    assert [s.model.kind for s in found.values()] == ["luong", "rnnsearch"]
    assert all(s.model.dim == 4 and s.data.size == 7 for s in found.values())


def test_every_combination(folder):
    vary = ["model.score=dot,general", "model.window=, local_p"]
    found = expand_sweep(["base.toml"], vary)
    assert {name: (s.model.score, s.model.window) for name, s in found.items()} == {
        "base,score=dot": ("dot", None),
        "base,score=dot,window=local_p": ("dot", "local_p"),
        "base,score=general": ("general", None),
        "base,score=general,window=local_p": ("general", "local_p"),
    }
    assert all(s.model.dim == 8 for s in found.values())


def test_names_are_names_of_folders(folder):
    (name,) = expand_sweep(["base.toml"], ["text.kind=words", "train.alignments=../x y"])
    assert name == "base,kind=words,alignments=.._x_y"


def test_models_that_differ_in_their_seed_alone(folder):
    found = expand_sweep(["base.toml", "search.toml"], ["model.dim=4,8", "seed=1,2,3"])
    groups = seed_groups(found)
    assert list(groups) == ["base,dim=4", "base,dim=8", "search,dim=4", "search,dim=8"]
    assert groups["base,dim=8"] == [f"base,dim=8,seed={n}" for n in (1, 2, 3)]
    assert seed_groups(expand_sweep(["base.toml"], ["model.dim=4,8"])) == {}
    assert seed_groups(expand_sweep(["base.toml"], ["decode.seed=4,8", "decode.kind=sample"])) == {}


def test_the_same_seed_counts_once(folder):
    """And seeds in files of their own are seeds, too."""
    text = (folder / "base.toml").read_text()
    (folder / "again.toml").write_text(text)
    (folder / "two.toml").write_text("seed = 2\n" + text)
    found = expand_sweep(["base.toml", "again.toml", "two.toml"])
    assert seed_groups(found) == {"base+two": ["base", "two"]}


@pytest.mark.parametrize(
    ("words", "vary", "says"),
    [
        (["model.dim=4"], [], "there is no CONFIG"),
        (["base.toml"], ["model.score"], "'model.score': write it as model.score=dot,general"),
        (["base.toml"], ["model.score=dto,dot"], r"command line: model\.score"),
        (["base.toml", "base.toml"], [], "two models are called 'base'"),
        (["base.toml"], ["seed=1,1"], "two models are called 'base,seed=1'"),
        (
            ["base.toml"],
            ["data.size=5,6"],
            r"base,size=6: data\.size is 6, but 5 in base,size=5: models are compared on the same",
        ),
        (
            ["base.toml"],
            ["data.kind=dates,reorder"],
            r"data\.kind is 'reorder', but 'dates' in base,kind=dates",
        ),
        (["nowhere.toml"], [], "nowhere.toml: there is no such file"),
        (
            ["base.toml", "classes.toml"],
            [],
            "classes: is for 'classify', but base is for 'translate': models of one task are comp",
        ),
    ],
)
def test_what_is_wrong_is_one_line(folder, words, vary, says):
    with pytest.raises(ValueError, match=says) as error:
        expand_sweep(words, vary)
    assert "\n" not in str(error.value)
