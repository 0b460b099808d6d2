"""Joins a day's flights with the same day's weather. The schedule `join-day` runs it once both have arrived.

spark-submit join_day.py --day 2013-01-01 --lake lake
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

from tidegate_pipelines.lake import partition_folder, publish
from tidegate_spark import report_partition, set_output

DATASET = "flights.joined"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--day", required=True)
    parser.add_argument("--lake", type=Path, required=True)
    arguments = parser.parse_args()
    day, lake = arguments.day, arguments.lake
    spark = SparkSession.builder.getOrCreate()
    flights = spark.read.parquet(str(partition_folder(lake, "flights.raw", day)))
    weather = spark.read.parquet(str(partition_folder(lake, "weather.raw", day)))
    # Joined by `time_hour`, which is UTC: on 3 November the local hour 1 occurs twice. A left join, because flights
    # without weather count too.
    hourly = weather.select("origin", "time_hour", "temp", "wind_speed", "precip", "visib", lit(True).alias("observed"))
    published = publish(flights.join(hourly, ["origin", "time_hour"], "left"), lake, DATASET, day)
    report_partition(DATASET, day, rows=published.rows, bytes=published.bytes)
    set_output("rows", published.rows)


if __name__ == "__main__":
    main()
