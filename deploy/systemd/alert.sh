#!/bin/sh
# Send the last words of a systemd unit: by mail to ALERT_MAIL, to the URL in ALERT_WEBHOOK, or both.
# alert.sh UNIT, or with the words on standard input: alert.sh NAME -
set -u
unit=$1 see="systemctl status $1; "
# systemd names the run that failed; a run before it is not of interest.
run=${MONITOR_INVOCATION_ID:+_SYSTEMD_INVOCATION_ID=$MONITOR_INVOCATION_ID}
if [ "${2:-}" = - ]; then
  said=$(cat) see=
else
  said=$(journalctl "${run:---unit=$unit}" --lines=40 --output=cat --no-pager 2>/dev/null)
fi
# What is broken, without what is fine; else the end of what it said.
wrong=$(printf '%s\n' "$said" | grep -E '^(broken|warning) ' | sort -u)
text="$unit failed on $(uname -n).

${wrong:-$said}

See: ${see}countersign status; docs/on-call.md"
sent=1
if [ -n "${ALERT_MAIL:-}" ]; then
  printf 'To: %s\nSubject: %s failed on %s\nContent-Type: text/plain; charset=utf-8\n\n%s\n' \
    "$ALERT_MAIL" "$unit" "$(uname -n)" "$text" | "${SENDMAIL:-/usr/sbin/sendmail}" -t || exit 1
  sent=0
fi
if [ -n "${ALERT_WEBHOOK:-}" ]; then
  # A JSON object with `text` is what Slack, Mattermost and many others take.
  printf '%s' "$text" \
    | python3 -c '
import json, sys, urllib.request
body = json.dumps({"text": sys.stdin.read()}).encode()
told = urllib.request.Request(sys.argv[1], body, {"Content-Type": "application/json"})
urllib.request.urlopen(told, timeout=20)' "$ALERT_WEBHOOK" || exit 1
  sent=0
fi
[ "$sent" = 0 ] || echo 'Set ALERT_MAIL or ALERT_WEBHOOK in /etc/countersign/alert.env.' >&2
exit "$sent"
