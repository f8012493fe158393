"""The tracks through the course take no longer than they promise."""

import pytest

from bookbuild.book import Book
from bookbuild.errors import BookError
from bookbuild.site.tracks import DAY, EVERYTHING, HOUR, Course
from tests.book.small_book import TRACKS, SmallBook

LONGEST_ESSENTIAL = 45  # minutes to read a chapter
LONGEST = {HOUR: 60, DAY: 6 * 60}  # minutes to read a track


@pytest.fixture(scope="module")
def course(book: Book) -> Course:
    return Course(book)


def test_an_essential_chapter_is_short(course: Course) -> None:
    too_long = [
        f"{page}: {course.times[page].minutes:.0f} minutes"
        for page in course.tracks[DAY].pages
        if course.times[page].minutes > LONGEST_ESSENTIAL
    ]
    assert not too_long, f"at most {LONGEST_ESSENTIAL} minutes: {', '.join(too_long)}"


@pytest.mark.parametrize("name", LONGEST)
def test_a_track_keeps_its_promise(course: Course, name: str) -> None:
    track = course.tracks[name]
    times = ", ".join(f"{page} {course.times[page].minutes:.0f}" for page in track.pages)
    assert track.minutes <= LONGEST[name], f"{track.minutes:.0f} minutes: {times}"


def test_tracks_follow_the_order_of_the_book(course: Course) -> None:
    chapters = course.tracks[EVERYTHING].pages
    for track in course.tracks.values():
        listed = [page for page in track.pages if page in chapters]
        assert listed == sorted(listed, key=chapters.index)
        assert len(set(track.pages)) == len(track.pages)


def test_an_hour_and_a_day_begin_at_the_beginning(course: Course) -> None:
    first = course.tracks[EVERYTHING].pages[0]
    assert {track.pages[0] for track in course.tracks.values()} == {first}


def test_every_chapter_is_essential_or_further(small: SmallBook) -> None:
    course = Course(small.book)
    assert course.essential == {"part/chapter"}
    assert course.tracks[EVERYTHING].pages == ("part/chapter",)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            '"part/chapter", "index"',
            '"part/gone"',
            "tracks.toml: there is no page 'part/gone'",
        ),
        ("[hour]", "[week]", r"expected \[hour\], \[day\], and \[everything\]"),
    ],
)
def test_tracks_that_are_wrong(small: SmallBook, old: str, new: str, expected: str) -> None:
    assert old in TRACKS
    (small.book.source / "tracks.toml").write_text(TRACKS.replace(old, new))
    with pytest.raises(BookError, match=expected):
        Course(small.book)
