#!/bin/sh
# Puts a backup of deploy/backup.sh into compose.yaml's PostgreSQL, in the place of what is there.
#
#   deploy/restore.sh FILE.sql.gz
#
# The database that was there stays beside it, as answerback_before_<seconds>.
set -eu
source=${1:?name the file that deploy/backup.sh wrote}
gzip -t "$source"
source=$(cd "$(dirname "$source")" && pwd)/$(basename "$source")
cd "$(dirname "$0")/.."
before=answerback_before_$(date +%s)

load() { # DATABASE, then psql's own options; SQL on standard input
    name=$1
    shift
    docker compose exec -T postgres psql --username=answerback --dbname="$name" --no-psqlrc \
        --quiet --output=/dev/null --set=ON_ERROR_STOP=1 "$@"
}
sql() {
    load postgres --command="$1" </dev/null
}

docker compose stop web worker
sql 'DROP DATABASE IF EXISTS answerback_new' # of a restore that was ended in its middle
sql "CREATE DATABASE answerback_new TEMPLATE template0 ENCODING 'UTF8'"
# Committed at our word alone: psql reads gzip's death as the end of what it has to do.
if ! { echo 'BEGIN;' && gzip -dc "$source" && echo 'COMMIT;'; } | load answerback_new --file=- ||
    ! load answerback_new --command='SELECT version_num FROM alembic_version'; then
    sql 'DROP DATABASE answerback_new'
    echo "nothing was changed: $source could not be put back; docker compose start web worker" >&2
    exit 1
fi
sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'answerback'"
sql "BEGIN; ALTER DATABASE answerback RENAME TO $before;
    ALTER DATABASE answerback_new RENAME TO answerback; COMMIT"
docker compose run --rm -T web answerback db restored </dev/null
docker compose start web worker
echo "put back; what was there is the database $before"
