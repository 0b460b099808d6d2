"""Lands one day of flights as a data partition of `flights.raw`. The schedule `land-flights` runs it for one day after the other.

spark-submit land_flights.py --nominal 2026-03-03T05:00:08Z --start 2026-03-03T05:00:00Z --period-s 8 \
        --source flights.csv --lake lake
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from tidegate_pipelines.lake import publish
from tidegate_pipelines.landing_arguments import landing_arguments
from tidegate_spark import report_partition

DATASET = "flights.raw"
COLUMNS = """
    year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, sched_arr_time INT,
    arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, air_time INT, distance INT,
    hour INT, minute INT, time_hour STRING
"""


def main() -> None:
    arguments = landing_arguments()
    day = arguments.day
    spark = SparkSession.builder.getOrCreate()
    flights = spark.read.csv(str(arguments.source), schema=COLUMNS, header=True, nullValue="NA", enforceSchema=False)
    of_the_day = flights.where((col("year") == day.year) & (col("month") == day.month) & (col("day") == day.day))
    published = publish(of_the_day, arguments.lake, DATASET, day.isoformat())
    # Reported last, because the join may start before this call returns.
    report_partition(DATASET, day.isoformat(), rows=published.rows, bytes=published.bytes)


if __name__ == "__main__":
    main()
