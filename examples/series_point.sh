#!/bin/sh
# Make the point of a series if it is due. For schedulers: start it every day, and it says something only if there is news.
#
#   sh examples/series_point.sh SERIES --max-cost USD [options of `medicare-eval series run`]
#
# The page, the summary and the JUnit file are written beside the series: SERIES.html, SERIES.md and SERIES.xml.
# KEYS=FILE in the environment reads API keys from a file of NAME=value lines that only its owner can read.
#
# Exit codes are those of `series run`, apart from two:
#   0   also if nothing is to be done: the period has its point, or another process is making it. Then it says nothing.
#   75  a stop that the next start continues: batches are not back yet, or the process was asked to end.
# New points without an alarm and code 75 are reported on stdout; alarms (7, 8) and errors on stderr. An alarm is
# reported once per point. If the machine fails in between, the next start reports it: SERIES.reported says what was.
set -u

[ $# -gt 0 ] || { echo "Usage: series_point.sh SERIES --max-cost USD [options]" >&2; exit 2; }
series=${1%/}
shift

if [ -n "${KEYS:-}" ]; then
    case $KEYS in */*) ;; *) KEYS=./$KEYS ;; esac
    [ -r "$KEYS" ] || { echo "$KEYS cannot be read. It should have the API keys." >&2; exit 3; }
    if [ -n "$(find -L "$KEYS" -prune \( -perm -040 -o -perm -020 -o -perm -004 -o -perm -002 \))" ]; then
        echo "$KEYS can be read or changed by others. First run: chmod 600 $KEYS" >&2
        exit 3
    fi
    set -a
    . "$KEYS"
    set +a
fi

said=$(mktemp) || exit 6
trap 'rm -f "$said"' EXIT
trap : INT TERM # The run is asked to end too. It finishes its calls, and what it says is reported below.

ask() {
    medicare-eval series "$@" --summary "$series.md" --html "$series.html" --junit "$series.xml" >"$said" 2>&1
    code=$?
}

ask run "$series" "$@" --quiet
case $code in
2)
    if grep -q 'already has a point for' "$said"; then
        [ "$(cksum <"$series/points.jsonl")" != "$(cat "$series.reported" 2>/dev/null)" ] || exit 0
        ask status "$series"
    fi
    ;;
4) if grep -Eq 'has waited for batches as long as|was stopped before its end' "$said"; then code=75; fi ;;
6) if grep -q 'is in use by another process' "$said"; then exit 0; fi ;;
esac

case $code in
0) echo "$series: a new point, no alarm." && cat "$said" ;;
75) echo "$series: not finished. The next start continues it." && cat "$said" ;;
7) { echo "ALARM: $series has drifted (exit code 7)." && cat "$said"; } >&2 ;;
8) { echo "ALARM: $series cannot tell whether anything drifted (exit code 8)." && cat "$said"; } >&2 ;;
*) { echo "ERROR: $series has no new point (exit code $code)." && cat "$said"; } >&2 ;;
esac || exit 1
case $code in
0 | 7 | 8) cksum <"$series/points.jsonl" >"$series.reported" ;;
esac
exit "$code"
