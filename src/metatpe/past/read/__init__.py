"""Everything that becomes a Task: storages, tables, MLflow, task files."""
