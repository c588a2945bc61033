"""How long an exchange waits, and for whom."""

from __future__ import annotations

import threading
import time

from fedstay.flare._exchange import Exchange
from fedstay.remote.patience import Deadline
from nvflare.app_common.abstract.fl_model import FLModel


def answer(name, *, report=True):
    content = {"params": {"w": 1.0}} if report else {"metrics": {"left": 1.0}}
    return FLModel(**content, meta={"client_name": name})


def waited(exchange, seconds=30.0, enough=None, grace=None, over=lambda waiting: False):
    since = time.monotonic()
    exchange.wait(Deadline(seconds, enough, grace), over)
    return time.monotonic() - since


def test_it_ends_when_everybody_has_answered_or_failed():
    exchange = Exchange({"a", "b"})
    later = threading.Timer(0.2, lambda: exchange.take(answer("a")))
    later.start()
    exchange.settle("b", "its task failed: X")
    assert waited(exchange) < 10
    answers, failed = exchange.result()
    assert list(answers) == ["a"] and failed == {"b": "its task failed: X"}


def test_a_result_that_was_taken_did_not_fail():
    exchange = Exchange({"a"})
    exchange.take(answer("a"))
    exchange.settle("a", "its result could not be read")
    assert exchange.result()[1] == {}


def test_time_is_up():
    exchange = Exchange({"a", "b"})
    exchange.take(answer("a"))
    assert 0.3 <= waited(exchange, 0.3) < 10
    assert exchange.result()[1] == {"b": "no answer within 0.3 s"}


def test_with_enough_reports_the_others_have_a_little_more_time():
    exchange = Exchange({"a", "b", "c"})
    exchange.take(answer("a"))
    exchange.take(answer("b"))
    assert 0.2 <= waited(exchange, 30.0, enough=2, grace=0.2) < 10
    assert exchange.result()[1] == {"c": "no answer 0.2 s after 2 others"}


def test_goodbyes_are_not_reports():
    exchange = Exchange({"a", "b", "c"})
    exchange.take(answer("a"))
    exchange.take(answer("b", report=False))
    assert waited(exchange, 0.5, enough=2, grace=0.0) >= 0.5
    assert exchange.result()[1] == {"c": "no answer within 0.5 s"}


def test_it_does_not_wait_for_sites_that_are_gone():
    exchange = Exchange({"a", "b"})
    exchange.take(answer("a"))
    assert waited(exchange, over=lambda waiting: waiting == {"b"}) < 10
    assert exchange.result()[1] == {"b": "it is gone"}
