"""The `file` directive: a zone's records as a table, what the table says about a name, and the step that says it."""

from topodns.resolve.zone_file.step import ZoneFileStep
from topodns.resolve.zone_file.table import MAX_RECORDS, TableBuilder, ZoneTable, file_fact

__all__ = ["MAX_RECORDS", "TableBuilder", "ZoneFileStep", "ZoneTable", "file_fact"]
