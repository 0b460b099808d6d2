"""An answer is whole, or it is no answer, however it was cut on its way."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_dynamo.http_response import BODY_BYTES_MAX, LINE_BYTES_MAX, Answer, AnswerReader, NotAnAnswer

BODY = b'{"Items": [{"pk": {"S": "a"}}]}'
HEAD = b"HTTP/1.1 200 OK\r\nX-Amzn-RequestId: R1\r\n"
SIZED = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = (
    HEAD + b"Transfer-Encoding: Chunked\r\n\r\n" + b"5;x=1\r\n" + BODY[:5] + b"\r\n"
    b"%x\r\n" % (len(BODY) - 5) + BODY[5:] + b"\r\n0\r\nTrailer: t\r\n\r\n"
)
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"


class Pieces:
    """A socket that brings these pieces, and then has been closed."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = [piece for piece in pieces if piece]

    def recv(self, size: int, /) -> bytes:
        if not self.pieces:
            return b""
        piece = self.pieces.pop(0)
        if len(piece) > size:
            self.pieces.insert(0, piece[size:])
        return piece[:size]

    def recv_into(self, buffer: memoryview, /) -> int:
        piece = self.recv(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def read(*pieces: bytes) -> Answer:
    return AnswerReader(Pieces(*pieces)).answer()


@pytest.mark.parametrize("message", [SIZED, CHUNKED, INTERIM + SIZED], ids=["sized", "chunked", "after a 100"])
@given(cuts=st.lists(st.integers(0, 200), max_size=6))
def test_given_a_message_in_any_pieces_then_it_is_the_same_answer(message: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(message)) for cut in cuts), len(message)]
    pieces = [message[a:b] for a, b in pairwise(edges)]
    answer = read(*pieces)
    assert (answer.status, answer.headers["x-amzn-requestid"], answer.body, answer.keeps) == (200, "R1", BODY, True)


@pytest.mark.parametrize("message", [SIZED, CHUNKED], ids=["sized", "chunked"])
def test_given_a_message_that_ends_early_anywhere_then_it_is_no_answer(message: bytes) -> None:
    for end in range(len(message)):
        with pytest.raises(NotAnAnswer):
            read(message[:end])


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(SIZED + b"H", id="more than it says"),
        pytest.param(HEAD + b"Connection: Close\r\nContent-Length: 0\r\n\r\n", id="the server closes"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", id="an old server"),
        pytest.param(CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n", 1), id="two lengths"),
    ],
)
def test_given_what_could_be_taken_for_the_next_answer_then_the_connection_is_not_kept(message: bytes) -> None:
    assert not read(message).keeps


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(HEAD + b"\r\n" + BODY, id="no length"),
        pytest.param(HEAD + b"Content-Length: -1\r\n\r\n", id="a negative length"),
        pytest.param(HEAD + b"Content-Length: 0x1\r\n\r\n{", id="a length in base 16"),
        pytest.param(HEAD + b"Content-Length: 1_0\r\n\r\n0123456789", id="a length with an underscore"),
        pytest.param(HEAD + b"Content-Length: \r\n\r\n", id="an empty length"),
        pytest.param(HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", id="two lengths"),
        pytest.param(HEAD + b"Content-Length: %d\r\n\r\n" % (BODY_BYTES_MAX + 1), id="longer than any"),
        pytest.param(HEAD + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n", id="an endless length"),
        pytest.param(HEAD + b"Transfer-Encoding: gzip\r\n\r\n", id="another coding"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n", id="a chunk that is longer"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", id="a chunk without a length"),
        pytest.param(HEAD + b"no colon\r\nContent-Length: 0\r\n\r\n", id="a line that is no header"),
        pytest.param(b"HTTP/2 200\r\nContent-Length: 0\r\n\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 OK\r\nContent-Length: 0\r\n\r\n", id="no status"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", id="another server"),
        pytest.param(HEAD + b"X: " + b"x" * LINE_BYTES_MAX * 3, id="a head without an end"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * LINE_BYTES_MAX * 3, id="a line likewise"),
        pytest.param(INTERIM * 20 + SIZED, id="too many of status 100"),
    ],
)
def test_given_what_is_no_whole_answer_then_it_is_refused(message: bytes) -> None:
    with pytest.raises(NotAnAnswer):
        read(message)


def test_given_chunks_without_an_end_then_the_body_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate_dynamo.http_response.BODY_BYTES_MAX", 100)
    with pytest.raises(NotAnAnswer, match="more than"):
        read(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[b"40\r\n" + b"x" * 64 + b"\r\n"] * 3)


def test_given_no_body_then_none_is_waited_for() -> None:
    assert read(b"HTTP/1.1 204 No Content\r\n\r\n") == Answer(204, {}, b"", True)
