#!/usr/bin/env bash
# A worker in shell: runs a command once per job of a queue, with the job's payload on standard input.
# Exit code 0 is done, and what the command wrote is the result; any other has failed, with its standard error as the reason.
#
#   PGHOST=db PGDATABASE=app PGUSER=agent PGPASSFILE=~/.pgpass worker.sh QUEUE COMMAND [ARGUMENT...]
#
# It needs bash and psql. On a machine that Sluice started, PROVIDER, MACHINE, POOL and INTENT are in its user data.
set -um # -m: each command is a process group of its own, which can be ended as a whole
queue=${1:?name a queue} && shift
: "${1:?name a command}" "${PROVIDER:=vps}" "${MACHINE:=$(hostname)}" "${POOL:=vps}" "${INTENT:=}"
out=$(mktemp -d) && trap 'rm -rf "$out"' EXIT

say() { echo "worker.sh: $*" >&2; }

# sql runs one statement and writes its rows, columns separated by |. In the statement :'name' stands for the value of
# a further argument name=value, quoted by psql. It fails when the database does not answer.
sql() {
  local statement=$1 values=() v && shift
  for v in "$@"; do values+=(-v "$v"); done
  psql -XAtq -v ON_ERROR_STOP=1 "${values[@]}" <<<"$statement"
}

# pause sleeps so that a signal can end it.
pause() { sleep "$1" & wait $!; }

# A signal ends the loop below. What is in hand then goes back to its queue.
stopping='' && trap 'stopping=yes' TERM INT

# register asks until the answer names a worker: a tick may have to hear of this machine first.
register() {
  worker=''
  until [ "$stopping" ]; do
    IFS='|' read -r worker heartbeat visibility < <(sql "
      SELECT worker_id, coalesce(assignment ->> 'heartbeat_seconds', '15'), coalesce(assignment ->> 'visibility_timeout_seconds', '300')
        FROM sluice_register(:'provider', :'machine', :'pool', nullif(:'intent', '')::uuid)" \
      provider="$PROVIDER" machine="$MACHINE" pool="$POOL" intent="$INTENT")
    [ "$worker" ] && break
    pause 5
  done
  drain=f told=''
}

# beat says that this worker lives, and learns whether it drains. A drain is acknowledged once nothing is in hand.
beat() {
  local row
  row=$(sql "SELECT drain FROM sluice_heartbeat(:'worker')" worker="$worker") || return # not reached: ask again soon
  case $row in
    '') say 'nobody knows this worker: registering again' && register ;;
    f) drain=f told='' ;;
    t) drain=t ;;
  esac
}

# answer tells the outcome of a job, again and again until the database has heard it or the job is somebody else's anyway.
answer() {
  until sql "$@" >/dev/null; do
    ((SECONDS < deadline)) || return
    pause 1
  done
}

# work runs the command for one job, and keeps the job in hand meanwhile.
work() {
  local attempt=$1 payload=$2 pid code next
  shift 2
  deadline=$((SECONDS + visibility)) next=$((SECONDS + heartbeat))
  "$@" <<<"$payload" >"$out/result" 2>"$out/error" &
  pid=$!
  while kill -0 $pid 2>/dev/null; do
    if ((SECONDS >= next)); then
      beat
      case $(sql "SELECT sluice_extend(:'attempt')" attempt="$attempt") in
        t) deadline=$((SECONDS + visibility)) ;;
        f) deadline=0 ;;
      esac
      next=$((SECONDS + heartbeat))
    fi
    if [ "$stopping" ] || ((SECONDS >= deadline)); then
      { kill -- -$pid && pause 1 && kill -KILL -- -$pid; wait $pid; } 2>/dev/null
      sql "SELECT sluice_release(:'attempt')" attempt="$attempt" >/dev/null # back to its queue, not counted; f where it is not ours
      say "dropped attempt $attempt"
      return
    fi
    pause 0.2
  done
  wait $pid
  code=$?
  if ((code == 0)); then
    answer "SELECT sluice_complete(:'attempt', to_jsonb(:'result'::text))" attempt="$attempt" result="$(tail -c 4000 "$out/result")"
  else
    answer "SELECT sluice_fail(:'attempt', :'error', :code)" attempt="$attempt" error="$(tail -c 4000 "$out/error")" code=$code
  fi
}

register
next=0
until [ "$stopping" ]; do
  if ((SECONDS >= next)); then beat && next=$((SECONDS + heartbeat)); fi
  if [ $drain = t ]; then # and stays so until the machine is ended, or the drain is called off
    [ "$told" ] || { sql "SELECT sluice_drained(:'worker')" worker="$worker" >/dev/null && told=yes; }
    pause 1
  elif job=$(sql "SELECT attempt_id, payload FROM sluice_claim(:'worker', ARRAY[:'queue'])" worker="$worker" queue="$queue") && [ "$job" ]; then
    work "${job%%|*}" "${job#*|}" "$@"
  else
    pause 1
  fi
done
[ "$worker" ] && sql "SELECT sluice_leave(:'worker')" worker="$worker" >/dev/null
