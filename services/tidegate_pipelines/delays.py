"""Sums up a day's departure delays per carrier and origin. The schedule `delays` runs it after each successful join.

spark-submit delays.py --day 2013-01-01 --lake lake
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import Column, SparkSession
from pyspark.sql.functions import coalesce, col, count, lit
from pyspark.sql.functions import sum as sum_of

from tidegate_pipelines.lake import partition_folder, publish
from tidegate_spark import report_partition

DATASET = "flights.delays"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--day", required=True)
    parser.add_argument("--lake", type=Path, required=True)
    arguments = parser.parse_args()
    spark = SparkSession.builder.getOrCreate()
    joined = spark.read.parquet(str(partition_folder(arguments.lake, "flights.joined", arguments.day)))
    delays = (
        # A flight that never departed has no delay.
        joined.where(col("dep_delay").isNotNull())
        .groupBy("carrier", "origin")
        # Whole numbers only, so that the days add up to the report exactly, in any order.
        .agg(
            count(lit(1)).alias("flights"),
            sum_of("dep_delay").alias("delay_minutes"),
            _how_many(col("precip") > 0).alias("flights_in_rain"),
            _how_many(col("observed").isNull()).alias("flights_without_weather"),
        )
    )
    published = publish(delays, arguments.lake, DATASET, arguments.day)
    report_partition(DATASET, arguments.day, rows=published.rows, bytes=published.bytes)


def _how_many(condition: Column) -> Column:
    return sum_of(coalesce(condition.cast("int"), lit(0)))


if __name__ == "__main__":
    main()
