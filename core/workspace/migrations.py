"""The schema of the catalogue, as numbered steps. Never edit a step that was released."""

from __future__ import annotations

# "Theo" in ASCII: tells our file from any other SQLite file.
APPLICATION_ID = 0x5468656F

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE datasets (
            name TEXT PRIMARY KEY, title TEXT NOT NULL, kind TEXT NOT NULL, n INTEGER NOT NULL,
            digest TEXT NOT NULL, meta TEXT NOT NULL, created TEXT NOT NULL)""",
        """CREATE TABLE features (
            key TEXT PRIMARY KEY, dataset TEXT NOT NULL, dataset_digest TEXT NOT NULL,
            model TEXT NOT NULL, default_layer TEXT NOT NULL, layers TEXT NOT NULL,
            n INTEGER NOT NULL, recipe TEXT NOT NULL, meta TEXT NOT NULL,
            file_digest TEXT NOT NULL, bytes INTEGER NOT NULL, created TEXT NOT NULL)""",
        "CREATE INDEX features_by_model ON features (model, dataset_digest)",
        """CREATE TABLE results (
            key TEXT PRIMARY KEY, kind TEXT NOT NULL, params TEXT NOT NULL,
            params_key TEXT NOT NULL, inputs TEXT NOT NULL, code_version INTEGER NOT NULL,
            headline TEXT NOT NULL, digest TEXT NOT NULL, seconds REAL NOT NULL,
            created TEXT NOT NULL)""",
        "CREATE INDEX results_by_kind ON results (kind, created)",
        """CREATE TABLE notes (
            scope TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, updated TEXT NOT NULL,
            PRIMARY KEY (scope, key))""",
        """CREATE TABLE jobs (
            id TEXT PRIMARY KEY, kind TEXT NOT NULL, params TEXT NOT NULL,
            params_key TEXT NOT NULL, device TEXT NOT NULL, state TEXT NOT NULL,
            attempt INTEGER NOT NULL DEFAULT 0, progress REAL NOT NULL DEFAULT 0,
            message TEXT NOT NULL DEFAULT '', rate REAL, rate_unit TEXT NOT NULL DEFAULT '',
            eta_s REAL, created TEXT NOT NULL, started TEXT, finished TEXT, heartbeat REAL,
            host TEXT NOT NULL DEFAULT '', pid INTEGER, pid_started TEXT NOT NULL DEFAULT '',
            cancel_at REAL, result_key TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '',
            error_hint TEXT NOT NULL DEFAULT '', bug_id TEXT NOT NULL DEFAULT '')""",
        "CREATE INDEX jobs_by_state ON jobs (state, created)",
        """CREATE TABLE job_events (
            job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE, at TEXT NOT NULL,
            state TEXT NOT NULL, note TEXT NOT NULL)""",
        "CREATE INDEX job_events_by_job ON job_events (job, at)",
    ),
    # The file's time when its digest was last known to hold; 0: check before the first use.
    ("ALTER TABLE features ADD COLUMN mtime_ns INTEGER NOT NULL DEFAULT 0",),
)
