#!/usr/bin/env python3
"""A worker in Python: counts the words of each page of a job's payload, {"pages": ["text", ...]}.

    PGHOST=db PGDATABASE=app PGUSER=agent PGPASSFILE=~/.pgpass worker.py QUEUE

It needs psycopg2 (apt-get install python3-psycopg2). Put your own work into handle(); all else stays as it is.
On a machine that Sluice started, PROVIDER, MACHINE, POOL and INTENT are in its user data.
"""

import json
import os
import signal
import socket
import sys
import threading
import time

import psycopg2


def handle(payload, lease):
    """The work. Between two steps it keeps its progress, and learns whether it should stop."""
    words = (lease.checkpoint or {}).get("words", [])  # where an earlier attempt got to
    for page in payload["pages"][len(words):]:
        lease.check()
        time.sleep(payload.get("seconds", 0))
        words.append(len(page.split()))
        lease.save({"words": words})
    return {"words": sum(words)}


class Lost(Exception):
    """The job is somebody else's by now, or this worker stops: drop it, and tell nobody."""


class Database:
    """One connection, which is made anew when it breaks."""

    def __init__(self):
        self.lock, self.connection = threading.Lock(), None

    def rows(self, statement, *values):
        with self.lock:
            try:
                if self.connection is None:
                    self.connection = psycopg2.connect("")  # PGHOST, PGUSER and so on
                    self.connection.autocommit = True
                with self.connection.cursor() as cursor:
                    cursor.execute(statement, values)
                    return cursor.fetchall()
            except (psycopg2.OperationalError, psycopg2.InterfaceError):
                self.connection = None
                raise


class Lease:
    """A job in hand. Renewed by the beats of its worker until it ends."""

    def __init__(self, worker, attempt, checkpoint):
        self.worker, self.attempt, self.checkpoint = worker, attempt, checkpoint
        self.ends = time.monotonic() + worker.visibility

    def renew(self):
        [(ours,)] = self.worker.db.rows("SELECT sluice_extend(%s)", self.attempt)
        self.ends = time.monotonic() + self.worker.visibility if ours else 0

    def check(self):
        if self.worker.stopping.is_set() or time.monotonic() >= self.ends:
            raise Lost

    def save(self, progress):
        self.worker.db.rows("SELECT sluice_checkpoint(%s, %s)", self.attempt, json.dumps(progress))

    def answer(self, statement, *values):
        """Tells the outcome, again and again until the database has heard it or the job is somebody else's anyway."""
        while True:
            try:
                return self.worker.db.rows(statement, self.attempt, *values)
            except (psycopg2.OperationalError, psycopg2.InterfaceError):
                self.check()
                time.sleep(1)


class Worker:
    def __init__(self, queue):
        self.db, self.queue, self.stopping = Database(), queue, threading.Event()
        self.id, self.draining, self.lease = None, False, None
        self.heartbeat, self.visibility = 15, 300

    def register(self):
        env = os.environ.get
        [(self.id, self.draining, rules)] = self.db.rows(
            "SELECT worker_id, drain, assignment FROM sluice_register(%s, %s, %s, %s)",
            env("PROVIDER", "vps"), env("MACHINE", socket.gethostname()), env("POOL", "vps"), env("INTENT"))
        if rules:
            self.heartbeat, self.visibility = rules["heartbeat_seconds"], rules["visibility_timeout_seconds"]

    def beat(self):
        """Says that this worker lives, and learns whether it drains."""
        if self.id is None:  # not known yet: a tick may have to hear of this machine first
            return self.register()
        known = self.db.rows("SELECT drain FROM sluice_heartbeat(%s)", self.id)
        if not known:
            return self.register()
        [(self.draining,)] = known
        if lease := self.lease:
            lease.renew()

    def beats(self):
        while not self.stopping.is_set():
            try:
                self.beat()
            except psycopg2.Error as error:
                print("worker.py: not heard:", repr(error), file=sys.stderr)
            self.stopping.wait(self.heartbeat if self.id else 5)

    def work(self, attempt, payload, checkpoint):
        self.lease = lease = Lease(self, attempt, checkpoint)
        try:
            result = handle(payload, lease)
            lease.answer("SELECT sluice_complete(%s, %s)", json.dumps(result))
        except (Lost, psycopg2.OperationalError, psycopg2.InterfaceError):
            print("worker.py: dropped attempt", attempt, file=sys.stderr)
            self.db.rows("SELECT sluice_release(%s)", attempt)  # back to its queue, not counted; false where it is not ours
        except Exception as error:  # whatever the work could not do
            lease.answer("SELECT sluice_fail(%s, %s)", repr(error))
        finally:
            self.lease = None

    def step(self):
        if self.id is None:
            return self.stopping.wait(0.2)
        if self.draining:  # until the machine is ended, or the drain is called off; a repeat is harmless
            self.db.rows("SELECT sluice_drained(%s)", self.id)
            return self.stopping.wait(1)
        jobs = self.db.rows("SELECT attempt_id, payload, checkpoint FROM sluice_claim(%s, %s)", self.id, [self.queue])
        for job in jobs:
            self.work(*job)
        if not jobs:
            self.stopping.wait(1)

    def run(self):
        threading.Thread(target=self.beats, daemon=True).start()
        while not self.stopping.is_set():
            try:
                self.step()
            except (Lost, psycopg2.Error) as error:
                print("worker.py: not told or not heard:", repr(error), file=sys.stderr)
                self.stopping.wait(1)
        if self.id is not None:
            self.db.rows("SELECT sluice_leave(%s)", self.id)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: worker.py QUEUE")
    worker = Worker(sys.argv[1])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stopping.set())
    worker.run()
