"""Views of stored state: strongly consistent reads that write nothing."""
