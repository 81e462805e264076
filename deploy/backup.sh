#!/bin/sh
# A backup of compose.yaml's PostgreSQL, made while the service runs.
#
#   deploy/backup.sh FILE.sql.gz
#
# Beside cron: 15 3 * * * cd /opt/answerback && deploy/backup.sh /var/backups/answerback/$(date +\%F).sql.gz
set -eu
umask 077
target=${1:?name the file to write, such as answerback.sql.gz}
target=$(cd "$(dirname "$target")" && pwd)/$(basename "$target")
cd "$(dirname "$0")/.."
[ ! -e "$target" ] || { echo "$target is there already: name another file" >&2; exit 1; }
part=$(mktemp "$target.XXXXXX")
trap 'rm -f "$part" "$part.sql"' EXIT

made_at=$(date +%s)
docker compose exec -T postgres pg_dump --username=answerback --no-owner --no-privileges answerback \
    >"$part.sql"
# A copy says that it is one: who begins to work on it does nothing a second time by itself.
cat >>"$part.sql" <<SQL
SELECT pg_catalog.set_config('search_path', 'public', false);
INSERT INTO retention (what, id, at) VALUES ('restored', 0, $made_at)
    ON CONFLICT (what) DO UPDATE SET id = 0, at = excluded.at WHERE retention.id = 1;
SQL
gzip -c "$part.sql" >"$part"
mv "$part" "$target"
echo "$target: $(wc -c <"$target") bytes"
