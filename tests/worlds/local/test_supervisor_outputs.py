"""What is kept of what commands write."""

import os
import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from supervised import Bench, await_gone

from argosy.worlds.local import CaptureLimits, read_output
from argosy.worlds.local.outputs import segment_starts
from argosy.worlds.local.records import read_start

MIB = 1 << 20


def test_both_streams_are_kept_apart(bench):
    each = bench.shell("echo out; echo err >&2; printf more")
    end = bench.ended(each)
    assert read_output(each.directory, "stdout").data == b"out\nmore"
    assert read_output(each.directory, "stderr").data == b"err\n"
    assert (end.streams["stdout"].written, end.streams["stderr"].written) == (8, 4)


def test_merged_streams_keep_the_order_of_writing(bench):
    each = bench.shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2", capture=CaptureLimits(merged=True))
    end = bench.ended(each)
    assert read_output(each.directory, "output").data == b"1\n2\n3\n4\n"
    assert list(end.streams) == ["output"]


def test_a_writer_of_200_mb_neither_stalls_nor_fills_the_disk(bench):
    capture = CaptureLimits(segment_bytes=MIB, segments=3)
    each = bench.shell("seq -f '%099.0f' 2000000", capture=capture)
    end = bench.ended(each)
    assert end.code == 0
    stream = end.streams["stdout"]
    starts = segment_starts(each.directory, "stdout")
    sizes = [os.path.getsize(f"{each.directory}/stdout.{start}") for start in starts]
    assert stream.written == 200_000_000
    assert stream.lost == 0
    assert len(sizes) == 3
    assert max(sizes) <= MIB
    assert starts[0] == stream.first > 195_000_000
    kept = read_output(each.directory, "stdout", stream.first, 4 * MIB)
    assert (kept.start, kept.end) == (stream.first, 200_000_000)
    expected = b"".join(b"%099d\n" % n for n in range(stream.first // 100 + 1, 2_000_001))
    assert kept.data == expected


#: Fills a large pipe and ends while its supervisor cannot run.
FILL = """
import fcntl, os, signal, sys
while not os.path.exists(sys.argv[1]):
    os.sched_yield()
fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 20)
os.kill(os.getppid(), signal.SIGSTOP)
os.write(1, b"x" * (1 << 20))
"""


def test_output_in_the_pipe_at_the_end_is_not_lost(bench, tmp_path):
    each = bench.python(FILL, str(tmp_path / "try-0" / "started"))
    while (start := read_start(each.directory)) is None:
        assert not each.status().state.is_over
    try:
        await_gone(start.pid)
    finally:
        os.kill(each.identity().pid, signal.SIGCONT)
    assert bench.ended(each).streams["stdout"].written == 1 << 20


def test_a_reader_can_follow_from_where_it_stopped(bench):
    capture = CaptureLimits(segment_bytes=1_000, segments=3)
    each = bench.shell("seq 1000", capture=capture)
    end = bench.ended(each)
    position, parts = 0, []
    while (part := read_output(each.directory, "stdout", position, 100)).data:
        parts.append(part)
        position = part.end
    assert position == end.streams["stdout"].written
    assert parts[0].start == end.streams["stdout"].first > 0
    whole = b"".join(b"%d\n" % n for n in range(1, 1001))
    assert b"".join(part.data for part in parts) == whole[parts[0].start :]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    made = Bench(tmp_path_factory.mktemp("outputs"))
    yield made
    made.close()


#: Writes chunks with the sizes given, each once the one before has been read; lines have the lengths
#: given, over and over.
WRITER = """
import fcntl, os, sys, termios
chunks, lines, total = (eval(each) for each in sys.argv[1:])
block = b"".join(b"%c" % (97 + i % 26) * (size - 1) + b"\\n" for i, size in enumerate(lines))
text = block * (total // len(block) + 1)
at = turn = 0
while at < total:
    size = min(chunks[turn % len(chunks)], total - at)
    os.write(1, text[at:at + size])
    while any(fcntl.ioctl(1, termios.FIONREAD, bytes(4))):
        os.sched_yield()
    at, turn = at + size, turn + 1
"""


@settings(max_examples=15)
@given(
    chunks=st.lists(st.integers(40, 700), min_size=1, max_size=3),
    lines=st.lists(st.integers(1, 120), min_size=1, max_size=3),
    total=st.integers(0, 6_000),
    size=st.integers(120, 1_000),
    count=st.integers(1, 4),
)
def test_segments_are_small_and_whole_lines(shared, chunks, lines, total, size, count):
    capture = CaptureLimits(segment_bytes=size, segments=count)
    each = shared.python(WRITER, repr(chunks), repr(lines), repr(total), capture=capture)
    end = shared.ended(each)
    assert end.code == 0, (end, read_output(each.directory, "stderr"))
    block = b"".join(b"%c" % (97 + i % 26) * (n - 1) + b"\n" for i, n in enumerate(lines))
    written = (block * (total // len(block) + 1))[:total]
    starts = segment_starts(each.directory, "stdout")
    segments = [Path(each.directory, f"stdout.{start}").read_bytes() for start in starts]
    assert len(segments) <= count
    assert all(len(segment) <= size for segment in segments)
    # Lines are shorter than segments, so each segment but the last ends with a line.
    assert all(segment.endswith(b"\n") for segment in segments[:-1])
    assert b"".join(segments) == written[end.streams["stdout"].first :]
    assert starts[:1] == ([end.streams["stdout"].first] if total else [])


def test_a_line_longer_than_a_segment_is_split(bench):
    capture = CaptureLimits(segment_bytes=100, segments=10)
    each = bench.python("print('a' * 30); print('x' * 250)", capture=capture)
    bench.ended(each)
    starts = segment_starts(each.directory, "stdout")
    assert read_output(each.directory, "stdout").data == b"a" * 30 + b"\n" + b"x" * 250 + b"\n"
    assert starts == [0, 31, 131, 231]


def test_a_disk_that_takes_no_more_stalls_nobody(bench):
    """A limit on the size of files stands in for the disk: each segment fails where it is reached."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    capture = CaptureLimits(segment_bytes=10_000, segments=1_000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, before[1]))
    try:
        each = bench.shell("seq 100000", capture=capture)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    end = bench.ended(each)
    stream = end.streams["stdout"]
    starts = segment_starts(each.directory, "stdout")
    kept = sum(os.path.getsize(f"{each.directory}/stdout.{start}") for start in starts)
    assert end.code == 0
    assert stream.written == 588_895
    assert stream.lost > 0
    assert kept == stream.written - stream.lost
    assert os.path.getsize(f"{each.directory}/stdout.0") == 4_096
    whole = b"".join(b"%d\n" % n for n in range(1, 100_001))
    first = read_output(each.directory, "stdout")
    assert first.data == whole[:4_096]
