from __future__ import annotations

from datetime import date

from tidegate_pipelines.delay_report import Delays
from tidegate_pipelines.independent_report import independent_report
from tidegate_pipelines.input_data import Source


def test_given_a_day_then_it_is_the_local_one_and_flights_that_never_left_do_not_count(source: Source) -> None:
    report = independent_report(source.flights, source.weather, [date(2013, 1, 1)])
    assert report[("UA", "EWR")] == Delays(flights=2, delay_minutes=6, flights_in_rain=1, flights_without_weather=0)


def test_given_flights_without_weather_then_they_count_and_are_named(source: Source) -> None:
    report = independent_report(source.flights, source.weather, [date(2013, 1, 1)])
    assert report[("AA", "JFK")] == Delays(flights=1, delay_minutes=7, flights_in_rain=0, flights_without_weather=1)


def test_given_the_hour_that_happened_twice_then_each_flight_meets_the_weather_of_its_own_pass(source: Source) -> None:
    report = independent_report(source.flights, source.weather, [date(2013, 11, 3)])
    assert report == {("B6", "JFK"): Delays(2, 11, flights_in_rain=1, flights_without_weather=0)}


def test_given_several_days_then_they_add_up(source: Source) -> None:
    report = independent_report(source.flights, source.weather, [date(2013, 1, 1), date(2013, 1, 2)])
    assert report[("AA", "JFK")] == Delays(2, 107, flights_in_rain=0, flights_without_weather=1)
    assert ("B6", "JFK") not in report
