"""The files that describe environments agree, and this environment is the one they describe."""

import tomllib
from importlib.metadata import PackageNotFoundError, distributions, version

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from bookbuild.book import Book
from bookbuild.environment.bootstrap import OLDEST
from bookbuild.environment.pins import CONDA_NAMES
from bookbuild.sphinx.repository import address


def constraints(book: Book) -> dict[str, str]:
    lines = book.constraints.read_text().splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert all(len(pin.specifier) == 1 and str(pin.specifier)[:2] == "==" for pin in pins)
    return {canonicalize_name(pin.name): str(pin.specifier)[2:] for pin in pins}


def project(book: Book) -> dict:
    return tomllib.loads(book.project.read_text())["project"]


def requirements(book: Book) -> list[Requirement]:
    data = project(book)
    groups = [data["dependencies"], *data["optional-dependencies"].values()]
    return [Requirement(text) for group in groups for text in group]


def test_every_dependency_is_pinned_within_its_range(book: Book) -> None:
    pins = constraints(book)
    for requirement in requirements(book):
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)])


def test_every_dependency_has_its_reason(book: Book) -> None:
    lines = book.project.read_text().splitlines()
    for requirement in requirements(book):
        line = next(line for line in lines if line.startswith(f'  "{requirement.name}'))
        assert len(line.partition("#")[2].split()) >= 2, line


def test_this_environment_has_the_pinned_versions(book: Book) -> None:
    wrong = {}
    for name, pinned in constraints(book).items():
        try:
            installed = version(name).partition("+")[0]  # torch's CPU build is 2.13.0+cpu
        except PackageNotFoundError:
            continue  # a package for a different system or Python
        if installed != pinned:
            wrong[name] = (installed, pinned)
    assert not wrong, f"installed, pinned: {wrong}: run 'make setup', or raise the pins"


def test_conda_environment_agrees(book: Book) -> None:
    environment = yaml.safe_load((book.root / "environment.yml").read_text())
    conda = [item for item in environment["dependencies"] if isinstance(item, str)]
    versions = dict(item.split("=", 1) for item in conda if "=" in item)
    python = tuple(int(part) for part in versions.pop("python").split("."))
    assert python >= OLDEST
    pins = constraints(book)
    wanted = {canonicalize_name(Requirement(text).name) for text in project(book)["dependencies"]}
    assert {CONDA_NAMES.get(name, name) for name in versions} == wanted
    for name, pinned in versions.items():
        assert pins[CONDA_NAMES.get(name, name)] == pinned, name
    pip = next(item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    assert pip[:2] == ["--constraint constraints.txt", "--editable .[book,gpu]"]
    assert [Requirement(text).name for text in pip[2:]] == ["notebook"]


def test_binders_server_fits_jupyterlab(book: Book) -> None:
    # Notebook 7.n is built from JupyterLab 4.n; if they don't match, what Binder starts might not
    # work.
    environment = yaml.safe_load((book.root / "environment.yml").read_text())
    pip = next(item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    notebook = next(text for text in pip if text.startswith("notebook")).removeprefix("notebook==")
    jupyterlab = constraints(book)["jupyterlab"]
    assert notebook.split(".")[0] == "7"
    assert jupyterlab.split(".")[0] == "4"
    assert notebook.split(".")[1] == jupyterlab.split(".")[1]


def test_oldest_python_is_the_same_everywhere(book: Book) -> None:
    assert project(book)["requires-python"] == f">={OLDEST[0]}.{OLDEST[1]}"


def test_every_pin_can_be_installed_with_the_oldest_python(book: Book) -> None:
    first = f"{OLDEST[0]}.{OLDEST[1]}.0"
    pins = constraints(book)
    found = [one for one in distributions() if canonicalize_name(one.name) in pins]
    needs = {one.name: one.metadata.get("Requires-Python") or "" for one in found}
    assert len(needs) > 100
    assert not {name: need for name, need in needs.items() if first not in SpecifierSet(need)}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"BOOK_REPOSITORY": "https://example.org/a/b/"}, "https://example.org/a/b"),
        (
            {"GITHUB_SERVER_URL": "https://example.org", "GITHUB_REPOSITORY": "a/b"},
            "https://example.org/a/b",
        ),
        ({"GITHUB_SERVER_URL": "https://example.org"}, None),
    ],
)
def test_address_of_the_repository(environment: dict[str, str], expected: str | None) -> None:
    assert address(environment) == expected


def test_oldest_versions_are_the_lower_bounds(book: Book) -> None:
    lines = (book.root / "constraints-oldest.txt").read_text().splitlines()
    oldest = dict(line.split("==") for line in lines if not line.startswith("#"))
    bounds = {
        requirement.name: next(each for each in requirement.specifier if each.operator == ">=")
        for requirement in requirements(book)
    }
    assert oldest.keys() == bounds.keys()
    for name, bound in bounds.items():
        assert Version(oldest[name]) == Version(bound.version), name
