"""Lands one day of hourly weather as a data partition of `weather.raw`. The schedule `land-weather` runs it.

The arguments are those of `land_flights.py`.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from tidegate_pipelines.lake import publish
from tidegate_pipelines.landing_arguments import landing_arguments
from tidegate_spark import report_partition

DATASET = "weather.raw"
COLUMNS = """
    origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, humid DOUBLE, wind_dir DOUBLE,
    wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE, time_hour STRING
"""


def main() -> None:
    arguments = landing_arguments()
    day = arguments.day
    spark = SparkSession.builder.getOrCreate()
    weather = spark.read.csv(str(arguments.source), schema=COLUMNS, header=True, nullValue="NA", enforceSchema=False)
    of_the_day = weather.where((col("year") == day.year) & (col("month") == day.month) & (col("day") == day.day))
    published = publish(of_the_day, arguments.lake, DATASET, day.isoformat())
    report_partition(DATASET, day.isoformat(), rows=published.rows, bytes=published.bytes)


if __name__ == "__main__":
    main()
