"""Orders fold into the state that is wanted."""

from __future__ import annotations

from tidegate_kafka.consumer.consumer_commands import ConsumerCommands

HERE = ("t", 0)
THERE = ("t", 1)


def test_given_nothing_changed_then_nothing_is_collected() -> None:
    orders = ConsumerCommands()
    orders.seek(HERE, 5)
    assert list(orders.collect()) == [HERE]
    assert orders.collect() == {}


def test_given_several_words_on_one_then_the_last_counts_and_credits_add_up() -> None:
    orders = ConsumerCommands()
    orders.taken(HERE, 2)
    orders.taken(HERE, 3)
    orders.hint(HERE, 7)
    orders.hint(HERE, 9)
    order = orders.collect()[HERE]
    assert (order.taken, order.stop, order.hint, order.seek) == (5, False, 9, None)


def test_given_seek_then_it_begins_an_era_and_voids_credits_of_the_old_one() -> None:
    orders = ConsumerCommands()
    orders.seek(HERE, 0)
    first = orders.era(HERE)
    orders.taken(HERE, 4)
    orders.seek(HERE, 100)
    assert orders.era(HERE) > first
    order = orders.collect()[HERE]
    assert (order.era, order.seek, order.taken) == (orders.era(HERE), 100, 0)


def test_given_forgotten_then_no_era_is_welcome_and_no_order_is_left() -> None:
    orders = ConsumerCommands()
    orders.seek(HERE, 0)
    orders.seek(THERE, 0)
    orders.forget(HERE)
    assert orders.era(HERE) == 0
    assert list(orders.collect()) == [THERE]


def test_given_stopped_then_no_era_is_welcome_and_an_earlier_seek_is_void() -> None:
    orders = ConsumerCommands()
    orders.seek(HERE, 0)
    orders.hint(HERE, 7)
    orders.stop(HERE)
    assert orders.era(HERE) == 0
    order = orders.collect()[HERE]
    assert (order.stop, order.seek, order.hint) == (True, None, 7)


def test_given_stopped_and_sought_again_then_the_seek_wins() -> None:
    orders = ConsumerCommands()
    orders.stop(HERE)
    orders.seek(HERE, 3)
    order = orders.collect()[HERE]
    assert (order.stop, order.seek, order.era) == (False, 3, orders.era(HERE))


def test_given_left_and_sought_again_then_the_seek_wins() -> None:
    orders = ConsumerCommands()
    orders.seek(HERE, 0)
    orders.leave(HERE)
    assert orders.collect()[HERE].leave
    orders.leave(HERE)
    orders.seek(HERE, 3)
    order = orders.collect()[HERE]
    assert (order.leave, order.seek) == (False, 3)
