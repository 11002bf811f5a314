#!/bin/sh
# What the timers of systemd do, for compose: the doctor every five minutes, and each day a check of
# the logs, and all that is work for today. timers.sh [SECONDS]
set -u
alert=$(dirname "$0")/alert.sh
day='' paged=0
tell() { printf '%s\n' "$2" | "$alert" "$1" -; }
daily() {
  for work in 'log check' doctor; do
    # Words of one command: unquoted on purpose.
    said=$(countersign $work 2>&1) || tell "countersign $work" "$said"
  done
}
while :; do
  said=$(countersign doctor 2>&1)
  if [ $? -ge 2 ] && [ $(($(date +%s) - paged)) -ge 3600 ]; then
    tell doctor "$said" && paged=$(date +%s)
  fi
  if [ "$day" != "$(date +%F)" ]; then
    day=$(date +%F)
    daily & # however long it takes, the doctor looks
  fi
  sleep "${1:-300}"
done
